"""Check for a config group of ours that Hydra took for a key, because the search path is missing."""

from __future__ import annotations

from collections.abc import Mapping

from pv_rl.errors import ConfigError
from pv_rl.recipes.choices import command_line
from pv_rl.recipes.groups import GROUPS, options

__all__ = ["check_groups"]


def check_groups(config: Mapping[str, object]) -> None:
    """Refuse `recipe: dapo` at the top of a config, where it would be a word that nobody reads.

    Raises:
        ConfigError: a key named as one of our groups holds the name of one of its options.
    """
    for group in GROUPS:
        value = config.get(group)
        if isinstance(value, str) and value in options(group) and _was_added(f"+{group}={value}"):
            raise ConfigError(
                f"{group}={value} was added to the config as a plain key, so that it does nothing: Hydra does not know "
                f"the group. Add hydra.searchpath=[pkg://pv_rl.hydra_configs]"
                f"{' (and pkg://pv_cpu.hydra_configs)' if value == 'cpu' else ''} to the command line"
            )


def _was_added(override: str) -> bool:
    """Whether the command line says so: a config of somebody else may have such a key for its own use."""
    return any(
        one.startswith("+") and one.lstrip("+") == override.lstrip("+") for one in command_line() or ()
    )
