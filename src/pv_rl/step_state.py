"""State of a training run, which the trainer hooks read and change."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pv_rl.rewards.named import DROP_GROUP, VALID

if TYPE_CHECKING:
    from pv_rl.losses import LossMode

__all__ = ["VERDICT_KEYS", "Rows", "StepState", "Validation", "abstaining", "gives_verdicts"]

VERDICT_KEYS = ("verdict_true", "verdict_missing")
"""The keys of a reward's extra info with its verdict, each 0 or 1, see `pv_rl.rewards.ProofVerdict`."""


def gives_verdicts(info: Mapping[str, Any]) -> bool:
    """Whether a row's reward gives a verdict."""
    return VERDICT_KEYS[0] in info


def abstaining(infos: Sequence[Mapping[str, Any]], groups: Sequence[Hashable]) -> list[bool]:
    """(B,) whether a row abstains: its reward does not say that it is one, or drops the group that it is in.

    Args:
        infos: the reward's extra info of each row.
        groups: B prompt ids.
    """
    dropped = {group for info, group in zip(infos, groups, strict=True) if info.get(DROP_GROUP, 0)}
    return [not info.get(VALID, 0) or group in dropped for info, group in zip(infos, groups, strict=True)]


class Rows:
    """The rows of a step, (B,) of each attribute; read from verl when they are first asked for."""

    uids: Sequence[Hashable]
    """Prompt ids."""
    ids: Sequence[tuple[str, int]] = ()
    """Prompt id and number of the response; empty with verl's legacy trainer, which keeps none."""
    infos: Sequence[Mapping[str, Any]]
    """The reward's extra info; empty where a reward of the legacy trainer says nothing of abstaining."""
    verdict_infos: Sequence[Mapping[str, Any]]
    """The same for any reward; empty where it gives no verdicts."""
    lengths: Sequence[int]
    """Response tokens that count. Abstention and verl's rejection set them to less."""
    advantages: Sequence[float]
    """Sum of a row's advantages over the tokens that count, from `after_advantage` on."""

    @property
    def padding(self) -> list[bool]:
        """Rows that verl added to fill up the batch."""
        return [False] * len(self.uids)

    @cached_property
    def absent(self) -> list[bool]:
        """Rows that abstain, because they have no reward; empty if `infos` is."""
        return abstaining(self.infos, self.uids) if self.infos else []

    @cached_property
    def nothing_counts(self) -> bool:
        """Whether no token counts, where rows may abstain."""
        return bool(self.absent) and not any(
            length and not gone for length, gone in zip(self.lengths, self.absent, strict=True)
        )

    def take_out(self) -> None:
        """Keep the absent rows out of baselines, weights and losses."""
        raise NotImplementedError

    def add_fields(self, fields: Mapping[str, Any]) -> None:
        """Send fields, each a (B, 1) tensor, to the workers with the rows."""
        raise NotImplementedError


class Validation(NamedTuple):
    """The rows of one validation, (B,) of each."""

    data_sources: Sequence[Any]
    infos: Mapping[str, Sequence[Any]]
    """By name, the reward's extra info."""
    lengths: Sequence[int] | None
    """Characters of each response, where verl has shown them."""
    prompts: Sequence[str]
    """Text of each row's prompt, where verl has shown it: rows with the same one are answers to the same proof."""


@dataclass(eq=False)
class StepState:
    """What the hooks of one run read and set. There is one in the process of the trainer."""

    trainer: Any = None
    """verl's trainer, from `checkpoint_loaded` on."""
    config: Any = None
    """verl's whole config: a DictConfig, or a dict at the points of the log."""
    step: int = 0
    """The step that is being made, or that of a line which is logged."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What is logged. At `log` it is a copy of the whole line."""
    rows: Rows | None = None
    """Those of the step, or of one of verl's rounds of a step; None after `step_end`."""
    waited: tuple[float, float] | None = None
    """From when to when the trainer waited for the rows, in seconds since the epoch; None with the legacy trainer."""
    part: str = "actor"
    """What is updated, `actor` or `critic`."""
    skip_update: bool = False
    """Set to True at `before_update` to leave out verl's update."""
    halt_reason: str | None = None
    """Why the run has to end after this step, see `halt`."""
    validation: Validation | None = None
    own: dict[str, Any] = field(default_factory=dict)
    """What a plugin keeps for the run, under its name."""

    # Of the adapter
    waiting_since: float = 0.0
    saved_step: int | None = None
    halted: str | None = None
    log: Any = None
    """verl's `Tracking` of the run; others that the process opens are left alone."""
    ended: bool = False

    @property
    def mode(self) -> LossMode | None:
        """The loss mode of the actor, if it is one of ours."""
        from pv_rl.losses.mode import find_mode

        return find_mode(self.config.actor_rollout_ref.actor.get("loss_agg_mode"))

    def halt(self, reason: str) -> None:
        """End the run after this step, with a checkpoint; of several reasons the first is reported."""
        self.halt_reason = self.halt_reason or reason

    def begin(self, rows: Rows, metrics: dict[str, Any]) -> None:
        """Start with the rows of a step, or of one of its rounds."""
        self.rows, self.metrics = rows, metrics
        self.waited = (self.waiting_since, time.time()) if self.waiting_since else None
