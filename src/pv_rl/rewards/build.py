"""Reward factory: a reward from its name and the options of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pv_rl.errors import ConfigError
from pv_rl.plugins import REWARDS, broken_plugins, nearest, reward_entry, rewards
from pv_rl.rewards.checked import CheckedReward, describe, naming

__all__ = ["build_reward"]


def build_reward(name: str, options: Mapping[str, Any] | None = None) -> CheckedReward:
    """Build the reward that ours or a plugin's entry of this name makes; what it returns is checked.

    Raises:
        ConfigError: nobody adds the name (the text lists what there is), or the options do not fit it.
        PluginError: two plugins claim the name, or what builds it fails; the text names the package.
    """
    entry = reward_entry(name)
    if entry is None:
        listed = ", ".join(rewards())
        left_out = "".join(f" Left out: {owner}: {why}." for owner, why in broken_plugins(REWARDS).items())
        raise ConfigError(
            f"there is no reward named {name!r}; there are {listed}.{nearest(name, rewards())}{left_out}"
        )
    with naming(name):
        try:
            reward = entry.build(**(options or {}))
        except TypeError as error:
            given = ", ".join(map(str, options or ()))
            raise ConfigError(f"the options of {describe(name)} do not fit it ({given}): {error}") from error
        return CheckedReward(name, reward)
