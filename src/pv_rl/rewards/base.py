"""Reward interface: what a reward is given and what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from reprlib import repr as brief
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from pv_rl.errors import DataError

__all__ = ["LABELS", "LabelKind", "Prepared", "Reward", "RewardInput", "RewardOutput", "read_label"]

LabelKind: TypeAlias = Literal["verdict", "number", "text", "any"]
"""What a reward reads the label as. A reward declares it by an attribute `label_kind`; without one it is a verdict.

- `verdict`: True or False, see `read_label`;
- `number`: a float in [0, 1];
- `text`: a str that is not blank, for example the answer `72`;
- `any`: whatever the data file has, None included.
"""

RESERVED = frozenset({"score", "reward", "reward_valid", "reward_drop_group", "reward_error"})
"""Names of verl's and ours among a row's extra info."""


@dataclass(frozen=True, kw_only=True)
class RewardInput:
    """One response to score."""

    response: str
    """The verifier's trace, special tokens removed. Untrusted."""
    label: Any
    """The truth, given as a data file has it and read as `label_kind` says."""
    label_kind: LabelKind = "verdict"
    """With the default, `label` is True if the proof is correct. `build_reward`'s rewards set what they declare."""
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
    prompt: str = ""
    """The text that the response answers, where it is known."""
    router_address: str | None = None
    """`host:port` of the generative reward model that verl runs in the cluster."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", LABELS[self.label_kind](self.label))


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
    """Finite numbers to log. A reward returns the same names for every input: verl takes them from the first row."""

    def __post_init__(self) -> None:
        score = _finite(self.score)
        if score is None:
            raise DataError(
                f"a reward's score is {brief(self.score)}; expected a finite number, or valid=False without a score"
            )
        flags = {name: _finite(getattr(self, name)) for name in ("valid", "drop_group")}
        for name, flag in flags.items():
            if flag not in (0, 1):
                raise DataError(f"a reward's {name} is {brief(getattr(self, name))}; expected True or False")
            object.__setattr__(self, name, bool(flag))
        if not self.valid and score != 0:
            raise DataError(f"a reward with valid=False has the score {score!r}; expected 0")
        if not isinstance(self.metrics, Mapping):
            raise DataError(f"a reward's metrics are {brief(self.metrics)}; expected a dict of numbers")
        metrics = {name: _finite(value) for name, value in self.metrics.items()}
        for name, value in metrics.items():
            if not isinstance(name, str) or not name or not name.isprintable() or value is None:
                raise DataError(
                    f"a reward's metric {brief(name)} is {brief(self.metrics[name])}; expected a finite number "
                    "under a name of printable characters"
                )
        if taken := RESERVED & metrics.keys():
            raise DataError(f"a reward's metrics use reserved names: {', '.join(sorted(taken))}; rename them")
        object.__setattr__(self, "score", score)
        object.__setattr__(self, "metrics", metrics)


@runtime_checkable
class Reward(Protocol):
    """Anything with this method is a reward.

    It may declare its `label_kind`, see `LabelKind`, and `metric_names`, which a row for which it fails has too.
    """

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
    raise _label_error(value, "a label says whether the proof is correct: True or False (or 1 or 0)")


def _read_number(value: object) -> float:
    try:
        number = float(str(value))  # not of the value itself: a bool is no number here
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise _label_error(value, "this reward expects a number in [0, 1]")
    return number


def _read_text(value: object) -> str:
    nothing = value != value if isinstance(value, Number) else not str(value).strip()  # pandas says NaN
    if nothing or not isinstance(value, str | Number):
        raise _label_error(value, "this reward expects a text that is not blank")
    return str(value)


def _label_error(value: object, expected: str) -> DataError:
    return DataError(
        f"the label is {brief(value)}; {expected}. Correct the label (in verl's data files reward_model.ground_truth)."
    )


LABELS: Mapping[LabelKind, Callable[[Any], Any]] = {
    "verdict": read_label,
    "number": _read_number,
    "text": _read_text,
    "any": lambda value: value,
}
"""How a label of each kind is read; each raises `DataError`."""


def _finite(value: Any) -> float | None:
    """The number that a Python, NumPy or torch scalar is; None if it is not one, or not finite."""
    try:
        number = math.nan if isinstance(value, str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor of several elements
        return None
    return number if math.isfinite(number) else None
