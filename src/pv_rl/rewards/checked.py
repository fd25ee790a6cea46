"""Checked reward: calls a reward that anybody may have written, and verifies what comes of it.

An error names the reward and the package that added it.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from reprlib import repr as brief

from pv_rl import errors
from pv_rl.errors import ConfigError, PluginError, PvRlError
from pv_rl.plugins import REWARDS, owner_of
from pv_rl.rewards.base import LABELS, LabelKind, Prepared, Reward, RewardInput, RewardOutput

__all__ = ["CheckedReward", "describe", "naming"]

LONGEST = 500
"""Characters of a stranger's error message."""


class CheckedReward:
    """What `build_reward` returns.

    Args:
        name: the reward's name.
        reward: what its entry built.

    Raises:
        ConfigError: it is not an object with a method `score`.
        PluginError: its `label_kind` is unknown.
    """

    def __init__(self, name: str, reward: Reward) -> None:
        self.name = name
        self.reward = reward
        who = describe(name)
        if isinstance(reward, type) or not callable(getattr(reward, "score", None)):
            raise ConfigError(
                f"{who} cannot be used: its `build` returned {_what(reward)}, with no method `score` that can be "
                "called. Return an instance of a class with `async def score(self, sample)`"
            )
        self.label_kind: LabelKind = getattr(reward, "label_kind", "verdict")
        if self.label_kind not in LABELS:
            raise PluginError(
                f"{who} has the label_kind {brief(self.label_kind)}; it is one of {', '.join(LABELS)}"
            )
        self.metric_names: tuple[str, ...] | None = None
        """Of the first row that had metrics; None before it."""

    def prepare(self, router_address: str | None = None) -> None:
        """See `Prepared`; nothing for a reward that has nothing to set up."""
        if isinstance(self.reward, Prepared):
            with naming(self.name):
                self.reward.prepare(router_address)

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Score one response, its label read as the reward declares.

        Raises:
            DataError: the label is not of the reward's kind.
            PvRlError: the reward raised, did not return a `RewardOutput` with finite numbers, or changed the names of
                its metrics.
        """
        with naming(self.name):
            waiting = self.reward.score(replace(sample, label_kind=self.label_kind))
            if not inspect.isawaitable(waiting):
                raise PluginError(
                    f"`score` returned {_what(waiting)} at once; declare it as `async def score`"
                )
            given = await waiting
            if not isinstance(given, RewardOutput):
                raise PluginError(f"`score` returned {_what(given)}; return RewardOutput(score=...)")
            output = RewardOutput(  # once more: a subclass, or a changed dict, may not have been looked at
                score=given.score, valid=given.valid, drop_group=given.drop_group, metrics=given.metrics
            )
            return self._with_names(output)

    def _with_names(self, output: RewardOutput) -> RewardOutput:
        """The output, if it has the metrics that every row has. A row that abstains may leave them out."""
        names = tuple(output.metrics)
        if not output.valid and not names:
            return replace(output, metrics=dict.fromkeys(self.metric_names or (), 0.0))
        if self.metric_names is None:
            self.metric_names = names
        if changed := sorted(set(names) ^ set(self.metric_names)):
            raise PluginError(
                f"the metrics {', '.join(changed)} are returned for some rows and not for others; return the same "
                "names for every row, because verl takes them from the first"
            )
        return output


def describe(name: str) -> str:
    """The reward in an error: with the package that added it, unless it is ours."""
    owner = owner_of(REWARDS, name)
    return f"the reward {name!r}" + ("" if owner == REWARDS.builtin else f" of {owner}")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn whatever is raised inside into one of `pv_rl.errors` that names the reward.

    Ctrl-C and the cancellation of the task go through; so does an error of ours in a reward of ours.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a panic of Rust code and SystemExit are no Exception
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        who = describe(name)
        if not isinstance(error, PvRlError):
            raise PluginError(f"{who} raised {_line(error)}") from error
        if who in str(error) or owner_of(REWARDS, name) == REWARDS.builtin:
            raise
        ours = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        raise ours(f"{who}: {error}") from error


def _is_cancelled() -> bool:
    """Whether somebody cancels this task, rather than the reward having awaited what was cancelled elsewhere."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop
        return False
    requests = getattr(task, "cancelling", None)  # Python 3.10 cannot tell
    return requests is None or requests() > 0


def _line(error: BaseException) -> str:
    """Type, text and place of an error in one line."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())[:LONGEST]
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} ({Path(place.filename).name}, line {place.lineno})"


def _what(value: object) -> str:
    return f"{brief(value)} ({type(value).__name__})"
