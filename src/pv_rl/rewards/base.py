"""What a reward is given and what it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pv_rl.errors import DataError

__all__ = ["Prepared", "Reward", "RewardInput", "RewardOutput", "read_label"]

RESERVED = frozenset({"score", "reward", "reward_valid", "reward_drop_group", "reward_error"})
"""Names of verl's and ours among a row's extra info."""


@dataclass(frozen=True, kw_only=True)
class RewardInput:
    """One response to score."""

    response: str
    """The verifier's trace, special tokens removed. Untrusted."""
    label: bool
    """The truth: True if the proof is correct. Given in any form that `read_label` reads."""
    data_source: str = ""
    """Which data set the prompt is from, as in verl."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """verl's `extra_info` of the row."""
    uid: str = ""
    """The prompt's id in the run, verl's `uid`; responses of one prompt share it."""
    session: int | None = None
    """Which response of its prompt this is."""
    step: int | None = None
    """The training step for which it was sampled."""
    router_address: str | None = None
    """`host:port` of the generative reward model that verl runs in the cluster."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", read_label(self.label))


@dataclass(frozen=True, kw_only=True)
class RewardOutput:
    """A score, or the honest third answer that there is none."""

    score: float
    """The reward; 0 where `valid` is False."""
    valid: bool = True
    """False: there is no reward. The row leaves its group's baseline, the weights and the loss."""
    drop_group: bool = False
    """The other responses of the prompt leave with it."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers to log. A reward returns the same keys for every input: verl takes them from the first row."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise DataError(
                f"a reward of {self.score!r}; it is a finite number, or there is none: valid=False"
            )
        if not self.valid and self.score != 0:
            raise DataError(f"a reward of {self.score!r} that is not valid; where there is none it is 0")
        if taken := RESERVED & self.metrics.keys():
            raise DataError(f"a reward's metrics named {', '.join(sorted(taken))}; give them other names")


@runtime_checkable
class Reward(Protocol):
    """Anything with this method is a reward."""

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Score one response. Called concurrently for many rows, in several processes."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A reward that has something to set up once a run, in the driver: checks, or what its workers share."""

    def prepare(self, router_address: str | None = None) -> None:
        """Raise `ConfigError` or `SetupError` if it could not work, before anything is paid for."""
        ...


def read_label(value: object) -> bool:
    """Read a label from a data file: a bool, 0 or 1, or `true` or `false` in any case.

    Raises:
        DataError: (a ValueError) it is none of these. A label that is guessed would be trained on.
    """
    text = str(value).strip().casefold()
    if text in ("true", "1", "1.0"):
        return True
    if text in ("false", "0", "0.0"):
        return False
    raise DataError(
        f"the label is {value!r}; a label says whether the proof is correct: True or False (or 1 or 0). "
        "Correct reward_model.ground_truth in the data file."
    )
