"""Columns of the report: title and unit of each number, the metrics that it is read from, and how it is shown.

An entry of `MEASURES` is a column of all tables of `pv-rl report` (terminal, Markdown, HTML), a number in report.json
and, with `panel=True`, a panel of the figure. A new entry is all that a further column needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from pv_runs import metric_names

__all__ = ["BALANCED", "HELD_OUT", "KEYS", "MEASURES", "Kind", "Measure", "keys_of"]

Kind = Literal["training", "held out", "total"]
"""The final value: the mean of the last steps, the last validation, or the sum over all steps."""

HELD_OUT = {"right": "held_out/right", "wrong": "held_out/wrong"}
"""By class of proof: the name under which a log keeps the mean over the data sources of the class."""
BALANCED = "held_out/balanced"
"""The mean of the two, which a verifier that accepts everything has at 0.5."""


@dataclass(frozen=True)
class Measure:
    """One number of a run."""

    name: str
    """In report.json."""
    title: str
    unit: str
    keys: tuple[str, ...]
    """verl's metrics, the preferred one first; a report reads the same one for all of its runs."""
    _: KW_ONLY
    kind: Kind = "training"
    """How a run's steps become its final value."""
    show: Callable[[float], str] | None = None
    """Formats a final value; by default three significant digits."""
    per_step: Callable[..., float] | None = None
    """Computes a step's value from all of `keys`, in their order, in the place of reading the first that is there."""
    panel: bool = False
    """Whether the figure has a panel for it."""

    def choose_key(self, logged: Collection[Collection[str]]) -> str | None:
        """The first key that all runs have which have any; else the first that one has; None if none has.

        Args:
            logged: the keys of each run.
        """
        if self.per_step is not None:
            return self.name if any(all(key in keys for key in self.keys) for keys in logged) else None
        runs = [keys for keys in logged if any(key in keys for key in self.keys)]
        of_all = [key for key in self.keys if runs and all(key in keys for keys in runs)]
        of_any = [key for key in self.keys if any(key in keys for keys in runs)]
        return next(iter(of_all + of_any), None)

    def final_value(self, series: Mapping[int, float], last_step: int | None, last: int) -> float | None:
        """What a run came to; None where there is no finite number.

        Training: the mean over steps `last_step - last + 1` to `last_step`, over those of them that have a number.
        Held out: the last validation. Total: the sum over all steps.

        Args:
            series: value by step.
            last_step: the last step that the run logged.
            last: steps, 1 or more.
        """
        finite = {step: value for step, value in series.items() if math.isfinite(value)}
        if self.kind == "held out":
            return finite[max(series)] if series and max(series) in finite else None
        if self.kind == "training":
            finite = {step: value for step, value in finite.items() if step > (last_step or 0) - last}
        if not finite:
            return None
        return sum(finite.values()) if self.kind == "total" else sum(finite.values()) / len(finite)

    def compute(self, series: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
        """The series of `per_step`, at the steps that all of `keys` have. NaN where it has none."""
        assert self.per_step is not None
        parts = [series.get(key, {}) for key in self.keys]
        values = {}
        for step in (step for step in parts[0] if all(step in part for part in parts)):
            try:
                values[step] = float(self.per_step(*(part[step] for part in parts)))
            except (ArithmeticError, ValueError):  # a division by 0, the logarithm of a negative number
                values[step] = math.nan
        return values


RESPONSES = "share of responses"
MEASURES = (
    Measure("reward", "reward", "mean of responses", (metric_names.SCORE, "critic/score/mean"), panel=True),
    Measure(
        "held_out_right",
        "held out, right proofs",
        "accuracy",
        (HELD_OUT["right"],),
        kind="held out",
        panel=True,
    ),
    Measure(
        "held_out_wrong",
        "held out, wrong proofs",
        "accuracy",
        (HELD_OUT["wrong"],),
        kind="held out",
        panel=True,
    ),
    Measure("held_out_balanced", "held out, balanced", "accuracy", (BALANCED,), kind="held out"),
    Measure("training_right", "training, right proofs", "accuracy", (metric_names.ACC_RIGHT,), panel=True),
    Measure("training_wrong", "training, wrong proofs", "accuracy", (metric_names.ACC_WRONG,), panel=True),
    Measure("length", "response length", "tokens", ("response_length/mean",), panel=True),
    Measure("length_true", "length, verdict True", "tokens", (metric_names.LENGTH_TRUE,), panel=True),
    Measure("length_false", "length, verdict False", "tokens", (metric_names.LENGTH_FALSE,), panel=True),
    Measure("length_none", "length, no verdict", "tokens", (metric_names.LENGTH_NONE,), panel=True),
    Measure("vetoed", "vetoed", RESPONSES, (metric_names.VETOED,), panel=True),
    Measure("abstained", "abstained", RESPONSES, (metric_names.ABSTAINED,)),
    Measure("kl", "KL", "nats", ("actor/kl_loss", "actor/ppo_kl"), panel=True),
    Measure(
        "effective_responses",
        "effective responses",
        RESPONSES,
        (metric_names.EFFECTIVE_FRACTION,),
        panel=True,
    ),
    Measure("seconds", "time", "s a step", ("timing_s/step",)),
    Measure("judge_usd", "judge", "$ in all", (metric_names.COST,), kind="total"),
)


def keys_of(measures: Iterable[Measure]) -> frozenset[str]:
    """The metrics to keep of a log, beside the validations, which are always kept."""
    return frozenset(key for measure in measures if measure.kind != "held out" for key in measure.keys)


KEYS = keys_of(MEASURES)
