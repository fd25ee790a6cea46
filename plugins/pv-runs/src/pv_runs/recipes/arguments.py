"""Checks of Hydra overrides: an error that lists the groups and options for one that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pv_rl.errors import ConfigError
from pv_rl.installing import how_to_install
from pv_rl.plugins import REWARDS, nearest
from pv_rl.recipes import GROUPS, options

__all__ = ["check_arguments"]

CHOICE = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<group>[A-Za-z_]\w*)(?:@[\w.]*)?(?:=(?P<value>.*))?", re.DOTALL)
"""A Hydra override of something at the top of the config: a group, or a key without a dot."""


def check_arguments(arguments: Iterable[str], keys: Iterable[str] = ()) -> None:
    """Refuse what Hydra would not see as a mistake, or would report without saying what there is.

    Args:
        arguments: Hydra's overrides; those with a dot in the key are none of ours, nor are options such as --multirun.
        keys: top-level keys of the config beside the groups, `seed` for example.

    Raises:
        ConfigError: a group or an option of a group that does not exist, with those that do.
    """
    for argument in arguments:
        choice = CHOICE.fullmatch(argument)
        if choice is None or (choice["sign"] is None and choice["value"] is None):
            continue
        group, value = choice["group"], choice["value"]
        if group not in GROUPS:
            if group not in keys:
                raise ConfigError(_no_group(argument, group, sorted(keys)))
            continue
        for one in _choices(value or ""):
            if one not in options(group):
                raise ConfigError(
                    f"{argument!r}: there is no {group} named {one!r}; there are {', '.join(options(group))}."
                    f"{nearest(one, options(group))}{_hint(group, one)}"
                )


def _choices(value: str) -> Sequence[str]:
    """The options of a choice or a sweep over some; what only Hydra can read (`glob(*)`) is left to it."""
    names = [one.strip(" '\"") for one in value.split(",")]
    return [name for name in names if re.fullmatch(r"[\w-]+", name)]


def _no_group(argument: str, name: str, keys: Sequence[str]) -> str:
    listed = "\n".join(f"  {group}: {', '.join(options(group))}" for group in GROUPS)
    also = f"\nKeys at the top of the config: {', '.join(keys)}; all others have a dot." if keys else ""
    return (
        f"{argument!r}: there is no group or key named {name!r}.{nearest(name, (*GROUPS, *keys))} "
        f"Groups and what they hold:\n{listed}{also}"
    )


def _hint(group: str, name: str) -> str:
    if group == "reward" and name in REWARDS.entries():
        return (
            f" {name} is a reward without a group: reward=verdict reward.custom_reward_function.name={name}"
        )
    return f" cluster=cpu comes with pv-cpu. {how_to_install('pv-cpu')}." if name == "cpu" else ""
