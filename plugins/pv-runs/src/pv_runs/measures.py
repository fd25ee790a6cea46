"""What a report measures: from which of verl's keys, in which unit, and how a run's final value is taken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from pv_rl import metric_names

__all__ = ["BALANCED", "HELD_OUT", "KEYS", "MEASURES", "Kind", "Measure"]

Kind = Literal["training", "held out", "total"]
"""The final value: the mean of the last steps, the last validation, or the sum over all steps."""

HELD_OUT = {"right": "held_out/right", "wrong": "held_out/wrong"}
"""By class of proof: the name under which a log keeps the mean over the data sources of the class."""
BALANCED = "held_out/balanced"
"""The mean of the two, which a verifier that accepts everything has at 0.5."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of a run."""

    name: str
    """In report.json."""
    title: str
    unit: str
    keys: tuple[str, ...]
    """verl's keys, the preferred one first; a report takes the same one for all of its runs."""
    kind: Kind = "training"
    panel: bool = False
    """Whether the figure shows it."""

    def choose_key(self, logged: Collection[Collection[str]]) -> str | None:
        """The first key that all runs have which have any; else the first that one has; None if none has.

        Args:
            logged: the keys of each run.
        """
        runs = [keys for keys in logged if any(key in keys for key in self.keys)]
        of_all = [key for key in self.keys if runs and all(key in keys for keys in runs)]
        of_any = [key for key in self.keys if any(key in keys for keys in runs)]
        return next(iter(of_all + of_any), None)


MEASURES = (
    Measure(
        name="reward",
        title="reward",
        unit="mean of responses",
        keys=(metric_names.SCORE, "critic/score/mean"),
        panel=True,
    ),
    Measure(
        name="held_out_right",
        title="held out, right proofs",
        unit="accuracy",
        keys=(HELD_OUT["right"],),
        kind="held out",
        panel=True,
    ),
    Measure(
        name="held_out_wrong",
        title="held out, wrong proofs",
        unit="accuracy",
        keys=(HELD_OUT["wrong"],),
        kind="held out",
        panel=True,
    ),
    Measure(
        name="held_out_balanced",
        title="held out, balanced",
        unit="accuracy",
        keys=(BALANCED,),
        kind="held out",
    ),
    Measure(
        name="training_right",
        title="training, right proofs",
        unit="accuracy",
        keys=(metric_names.ACC_RIGHT,),
        panel=True,
    ),
    Measure(
        name="training_wrong",
        title="training, wrong proofs",
        unit="accuracy",
        keys=(metric_names.ACC_WRONG,),
        panel=True,
    ),
    Measure(
        name="length", title="response length", unit="tokens", keys=("response_length/mean",), panel=True
    ),
    Measure(
        name="length_true",
        title="length, verdict True",
        unit="tokens",
        keys=(metric_names.LENGTH_TRUE,),
        panel=True,
    ),
    Measure(
        name="length_false",
        title="length, verdict False",
        unit="tokens",
        keys=(metric_names.LENGTH_FALSE,),
        panel=True,
    ),
    Measure(
        name="length_none",
        title="length, no verdict",
        unit="tokens",
        keys=(metric_names.LENGTH_NONE,),
        panel=True,
    ),
    Measure(
        name="vetoed", title="vetoed", unit="share of responses", keys=(metric_names.VETOED,), panel=True
    ),
    Measure(name="abstained", title="abstained", unit="share of responses", keys=(metric_names.ABSTAINED,)),
    Measure(name="kl", title="KL", unit="nats", keys=("actor/kl_loss", "actor/ppo_kl"), panel=True),
    Measure(
        name="effective_responses",
        title="effective responses",
        unit="share of responses",
        keys=(metric_names.EFFECTIVE_FRACTION,),
        panel=True,
    ),
    Measure(name="seconds", title="time", unit="s a step", keys=("timing_s/step",)),
    Measure(name="judge_usd", title="judge", unit="$ in all", keys=(metric_names.COST,), kind="total"),
)
KEYS = frozenset(key for measure in MEASURES if measure.kind != "held out" for key in measure.keys)
"""What is kept of a line of metrics, beside the validations."""
