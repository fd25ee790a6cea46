"""Reward factory: builds or checks the reward that a config names, and checks what it returns, from whichever package.

An error names the reward and the package that added it.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from reprlib import repr as brief
from types import SimpleNamespace
from typing import Any

from pv_rl import errors
from pv_rl.errors import ConfigError, PluginError, PvRlError
from pv_rl.hookspecs import RewardEntry
from pv_rl.plugins import REWARDS, misfit
from pv_rl.rewards.base import LABELS, LabelKind, Prepared, Reward, RewardInput, RewardOutput

__all__ = ["CheckedReward", "build_reward", "check_reward"]

LONGEST = 500
"""Characters of a stranger's error message."""

_only_check: ContextVar[bool] = ContextVar("pv_rl_only_check", default=False)
"""Whether `build_reward` only checks. Not an argument, since a reward calls it for the rewards inside it."""


def check_reward(name: str, options: Mapping[str, Any] | None = None) -> LabelKind:
    """Check a reward's name and options without its costs; likewise for each reward inside it.

    A reward with `RewardEntry.cheap` is built, which checks the values too. Of any other, only the names of the options
    are compared with the signature of its `build`.

    Returns:
        How the reward reads a label; `any` if that is known only once it is built.
    """
    token = _only_check.set(True)
    try:
        return build_reward(name, options).label_kind
    finally:
        _only_check.reset(token)


def build_reward(name: str, options: Mapping[str, Any] | None = None) -> CheckedReward:
    """Build the reward of this name; what it returns is checked.

    Raises:
        ConfigError: nobody adds the name (the text lists what there is), or the options do not fit it.
        PluginError: two plugins claim the name, or building it fails; the text names the package.
    """
    entry: RewardEntry = REWARDS.named(name)
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"the options of {_describe(name)} are {options!r}; expected options by name")
    with _naming(name):
        reward: Any
        try:
            if entry.cheap or not _only_check.get():
                reward = entry.build(**(options or {}))
            else:
                # A class of C or Rust may have no signature, and pydantic's __signature__ lacks some aliases.
                with suppress(ValueError):  # follow_wrapped: a decorator may take more than what it wraps
                    if not hasattr(entry.build, "__signature__"):
                        inspect.signature(entry.build, follow_wrapped=False).bind(**(options or {}))
                reward = SimpleNamespace(label_kind="any", score=entry.build)  # in its place
        except TypeError as error:
            why = misfit(entry.build, options or {}, error)
            raise ConfigError(f"the options of {_describe(name)} do not fit it: {why}") from error
        return CheckedReward(name, reward)


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
        who = _describe(name)
        if isinstance(reward, type) or not callable(getattr(reward, "score", None)):
            raise ConfigError(
                f"{who} cannot be used: its `build` returned {_what(reward)}, with no method `score` that can be "
                "called. Return an instance of a class with `async def score(self, sample)`"
            )
        self.label_kind: LabelKind = getattr(reward, "label_kind", "verdict")
        if self.label_kind not in tuple(LABELS):  # a list has no hash
            raise PluginError(
                f"{who} has the label_kind {brief(self.label_kind)}; expected one of {', '.join(LABELS)}"
            )
        declared = getattr(reward, "metric_names", None)
        if isinstance(declared, str):
            raise PluginError(f"{who} has metric_names={declared!r}; expected a list of names")
        self.metric_names: tuple[str, ...] | None = None if declared is None else tuple(declared)
        """As the reward declares them, or of the first row that has a reward; None before it."""

    def prepare(self, router_address: str | None = None) -> None:
        """See `Prepared`; nothing for a reward that has nothing to set up."""
        if isinstance(self.reward, Prepared):
            with _naming(self.name):
                self.reward.prepare(router_address)

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Score one response, its label read as the reward declares.

        Raises:
            DataError: the label is not of the reward's kind.
            PvRlError: the reward raised, did not return a `RewardOutput` with finite numbers, or changed the names of
                its metrics.
        """
        with _naming(self.name):
            waiting = self.reward.score(replace(sample, label_kind=self.label_kind))
            if not inspect.isawaitable(waiting):
                raise PluginError(f"`score` returned {_what(waiting)} at once; declare `async def score`")
            given = await waiting
            if not isinstance(given, RewardOutput):
                raise PluginError(f"`score` returned {_what(given)}; return RewardOutput(score=...)")
            output = RewardOutput(  # once more: a subclass, or a changed dict, may not have been looked at
                score=given.score, valid=given.valid, drop_group=given.drop_group, metrics=given.metrics
            )
            return self._with_names(output)

    def _with_names(self, output: RewardOutput) -> RewardOutput:
        """The output, if it has the metrics that every row has. A row that abstains may leave them out."""
        if not output.valid:
            output = replace(output, metrics=dict.fromkeys(self.metric_names or (), 0.0) | output.metrics)
        elif self.metric_names is None:
            self.metric_names = tuple(output.metrics)
        names = self.metric_names
        if names is not None and (changed := sorted(set(output.metrics) ^ set(names))):
            raise PluginError(
                f"a row has the metrics {', '.join(output.metrics) or 'none'}; expected {', '.join(names) or 'none'}, "
                f"as in the reward's metric_names, or else in its first row (difference: {', '.join(changed)})"
            )
        return output


def _describe(name: str) -> str:
    """The reward in an error: with the package that added it, unless it is ours."""
    owner = REWARDS.owner(name)
    return f"the reward {name!r}" + ("" if owner == REWARDS.builtin else f" of {owner}")


@contextmanager
def _naming(name: str) -> Iterator[None]:
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
        who = _describe(name)
        if not isinstance(error, PvRlError):
            said = f"{who} raised {_line(error)}"
            if isinstance(error, StopIteration):  # contextlib would raise it again if it were the cause
                raise PluginError(said) from None
            raise PluginError(said) from error
        if who in str(error) or REWARDS.owner(name) == REWARDS.builtin:
            raise
        ours = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        raise ours(f"{who}: {error}") from error


def _is_cancelled() -> bool:
    """Whether somebody cancels this task, rather than the reward having awaited what was cancelled elsewhere."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop
        return False
    return task is None or task.cancelling() > 0


def _line(error: BaseException) -> str:
    """Type, text and place of an error in one line; of a group, those of its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join("".join(traceback.format_exception_only(error)).split())[:LONGEST]
    places = traceback.extract_tb(error.__traceback__)[-1:]  # an error in a group may not have been raised
    return text + "".join(f" ({Path(place.filename).name}, line {place.lineno})" for place in places)


def _what(value: object) -> str:
    return f"{brief(value)} ({type(value).__name__})"
