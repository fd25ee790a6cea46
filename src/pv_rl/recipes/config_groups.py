"""Check for a config group of ours that Hydra took for a key, because the search path is missing."""

from __future__ import annotations

from collections.abc import Mapping

from pv_rl.errors import ConfigError
from pv_rl.recipes.choices import check_choices, command_line
from pv_rl.recipes.groups import GROUPS, options
from pv_rl.step_state import StepState

__all__ = ["check_groups", "check_recipes"]


def check_recipes(state: StepState) -> None:
    """Hook: refuse groups that Hydra took for keys, and settings that undo each other."""
    check_groups(state.config)
    check_choices(state.config)


def check_groups(config: Mapping[str, object]) -> None:
    """Refuse `recipe: dapo` at the top of a config, where it would be a word that nobody reads.

    Raises:
        ConfigError: a key named as one of our groups holds the name of one of its options.
    """
    # A config of somebody else may have such a key for its own use.
    added = [one.lstrip("+") for one in command_line() or () if one.startswith("+")]
    for group in GROUPS:
        value = config.get(group)
        if isinstance(value, str) and value in options(group) and f"{group}={value}" in added:
            raise ConfigError(
                f"{group}={value} was added to the config as a plain key, so that it does nothing: Hydra does not know "
                f"the group. Add hydra.searchpath=[pkg://pv_rl.hydra_configs]"
                f"{' (and pkg://pv_cpu.hydra_configs)' if value == 'cpu' else ''} to the command line"
            )
