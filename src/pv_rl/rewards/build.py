"""A reward from its name and the options of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pv_rl.errors import ConfigError, PvRlError
from pv_rl.plugins import REWARDS, broken_plugins, nearest, reward_entry, rewards
from pv_rl.rewards.base import Reward

__all__ = ["build_reward"]


def build_reward(name: str, options: Mapping[str, Any] | None = None) -> Reward:
    """Build the reward that ours or a plugin's entry of this name makes.

    Raises:
        ConfigError: nobody adds the name (the text lists what there is), or the options do not fit it.
        PluginError: two plugins claim the name.
    """
    entry = reward_entry(name)
    if entry is None:
        listed = ", ".join(rewards())
        left_out = "".join(f" Left out: {owner}: {why}." for owner, why in broken_plugins(REWARDS).items())
        raise ConfigError(
            f"there is no reward named {name!r}; there are {listed}.{nearest(name, rewards())}{left_out}"
        )
    try:
        reward = entry.build(**(options or {}))
    except PvRlError:
        raise
    except TypeError as error:
        given = ", ".join(options or ())
        raise ConfigError(f"the options of the reward {name!r} do not fit it ({given}): {error}") from error
    if not isinstance(reward, Reward):
        raise ConfigError(f"the reward {name!r} was built and has no method `score`: {reward!r}")
    return reward
