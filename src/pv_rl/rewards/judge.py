"""Judge protocol: a second opinion on traces that pass the rules of the fluency veto.

A package adds a judge through the hook `pv_rl_judges`; pv-judge adds ours, which asks an LLM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from pv_rl.rewards.base import RewardInput, RewardOutput

__all__ = ["Anomaly", "Decision", "FailurePolicy", "Judge", "Judgment", "VetoRecord"]

Decision: TypeAlias = Literal["fluent", "vetoed", "failed", "unjudged"]
"""`failed`: the judge gave no answer that can be used; `unjudged`: its budget has no call left for the row."""

FailurePolicy: TypeAlias = Literal["abstain", "drop_group", "fail_open", "fail_closed", "halt"]
"""What a row without an answer of the judge gets:

- `abstain`: no reward. It leaves its group's baseline, the weights and the loss;
- `drop_group`: its whole group does;
- `fail_open`: the reward that it has without the judge;
- `fail_closed`: 0, as if it were vetoed;
- `halt`: as `abstain`, and the run stops with a checkpoint once too many have failed.
"""


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """One piece of evidence that a trace is malformed: `text[start:end]`."""

    rule: str
    """The rule's name."""
    start: int
    """In characters."""
    end: int
    """In characters, exclusive."""


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What a judge makes of one trace."""

    decision: Decision
    policy: FailurePolicy = "abstain"
    """What the row gets if the decision is `failed` or `unjudged`."""
    answer: Any = None
    """The judge's own; `Judge.record` gets it back."""


@dataclass(frozen=True, kw_only=True)
class VetoRecord:
    """One row of the fluency veto, for the judge to write down."""

    sample: RewardInput
    label: bool | None
    """The label, if the reward inside the veto reads it as a verdict."""
    begin: float
    """When the reward was asked for, in seconds since the epoch."""
    anomalies: tuple[Anomaly, ...]
    """What the rules found."""
    judgment: Judgment | None
    """None: the judge was not asked."""
    decision: Decision
    inner: RewardOutput
    """Without the veto."""
    output: RewardOutput
    """With it."""


class Judge(Protocol):
    """A judge of the fluency veto."""

    asks: bool
    """False: it only writes rows down."""

    def prepare(self, router_address: str | None = None) -> None:
        """Set up once a run, in the driver, see `pv_rl.rewards.Prepared`."""
        ...

    async def judge(self, sample: RewardInput) -> Judgment | None:
        """Judge a trace in which no rule found anything. A failure is a `Judgment`, and None asks nothing about it."""
        ...

    async def record(self, row: VetoRecord) -> None:
        """Write a row down, whether the judge was asked or not."""
        ...
