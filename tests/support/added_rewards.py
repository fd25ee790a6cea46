"""Rewards that a plugin adds for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pv_rl import plugins
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards import named


@contextmanager
def adding(*entries: RewardEntry) -> Iterator[None]:
    """The rewards of a plugin, the package `theirs`."""

    class Plugin:
        @staticmethod
        @hookimpl
        def pv_rl_rewards():
            return list(entries)

    def forget():
        plugins.forget_plugins()
        for cached in (named.scorer, named._built, named._say_once):
            cached.cache_clear()

    plugins.plugin_manager().register(Plugin, name="theirs")
    forget()
    try:
        yield
    finally:
        plugins.plugin_manager().unregister(name="theirs")
        forget()
