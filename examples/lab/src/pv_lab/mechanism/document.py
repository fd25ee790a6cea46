"""Tables of the mechanism as Markdown, and its numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import MISSING, estimate
from pv_lab.mechanism.outcome import MEASURES, ArmOutcome, Outcome
from pv_runs.report.interval import MeanOfSeeds

__all__ = ["markdown", "numbers"]

HEADS = (
    "tokens, start",
    "middle",
    "end",
    "accepts at once, end",
    "repeats, end",
    "right proofs",
    "wrong proofs",
)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """A table of the main setting and its controls, one of the perturbed settings, and what survived."""
    return to_markdown(_blocks(outcomes))


def _blocks(outcomes: Sequence[Outcome]) -> Iterator[Block]:
    arms: list[Column[tuple[str, ArmOutcome]]] = [
        Column("setting", lambda row: row[0], left=True),
        Column("weighting", lambda row: row[1].arm.label, left=True),
        Column("runs", lambda row: str(row[1].arm.seeds)),
        *(
            Column(head, lambda row, measure=measure: _cell(row[1].mean(measure), measure))
            for head, measure in zip(HEADS, MEASURES, strict=True)
        ),
    ]
    full = [outcome for outcome in outcomes if outcome.experiment.kind != "perturbed"]
    yield Paragraph(
        "Mean over runs and Student's 95 % interval. Middle and end: a tenth of the steps. Accuracy: at the end."
    )
    yield Table.of(arms, [(outcome.experiment.name, arm) for outcome in full for arm in outcome.arms])
    changed = [outcome for outcome in outcomes if outcome.experiment.kind == "perturbed"]
    if not changed:
        return
    names = [arm.arm.label for arm in changed[0].arms]
    yield Paragraph(
        f"One number changed, means over {changed[0].arms[0].arm.seeds} runs of {', '.join(names)}. Order: the lengths "
        "fall from the first to the last. Three regimes: at the end the last accepts at once with probability 0.8 or "
        "more, the others with 0.5 or less, and the order is there."
    )
    yield Table.of(CHANGED, changed)
    of = len(changed)
    yield Paragraph(
        f"Order in the middle: {sum(one.ordered('length_middle') for one in changed)} of {of}. "
        f"Order at the end: {sum(one.ordered('length_end') for one in changed)} of {of}. "
        f"Three regimes: {sum(one.three_regimes() for one in changed)} of {of}."
    )


def numbers(outcomes: Sequence[Outcome], seed: int) -> str:
    """JSON: settings, the table's values of each run, and the curves of each run, to four digits."""
    return json.dumps({"seed": seed, "experiments": [_experiment(outcome) for outcome in outcomes]})


def _experiment(outcome: Outcome) -> dict[str, Any]:
    three = len(outcome.arms) == 3
    return {
        "name": outcome.experiment.name,
        "kind": outcome.experiment.kind,
        "order_middle": outcome.ordered("length_middle") if three else None,
        "order_end": outcome.ordered("length_end") if three else None,
        "three_regimes": outcome.three_regimes() if three else None,
        "arms": [
            {
                "label": arm.arm.label,
                "mode": arm.arm.run.mode,
                "setting": asdict(arm.arm.run.setting),
                "runs": {measure: _plain(arm.values(measure)) for measure in MEASURES},
                "curves": {name: _plain(values) for name, values in vars(arm.history).items()},
            }
            for arm in outcome.arms
        ],
    }


def _plain(values: Any) -> Any:
    """Lists of numbers of four digits, None where there was nothing to count: JSON knows no NaN."""
    rounded = np.round(np.asarray(values, dtype=float), 4)
    plain = rounded.astype(object)
    plain[np.isnan(rounded)] = None
    return plain.tolist()


def _cell(found: MeanOfSeeds, measure: str) -> str:
    text = estimate(found.mean, found.low, found.high, _digits(measure))
    return text if text == MISSING or found.low is not None else f"{text} ({MISSING})"


def _digits(measure: str) -> Callable[[float], str]:
    return ("{:.0f}" if measure.startswith("length") else "{:.2f}").format


def _means(outcome: Outcome, measure: str) -> str:
    return " / ".join(map(_digits(measure), (arm.mean(measure).mean for arm in outcome.arms)))


YES = {True: "yes", False: "no"}
CHANGED: Sequence[Column[Outcome]] = (
    Column("changed", lambda one: one.experiment.name, left=True),
    Column("tokens, middle", lambda one: _means(one, "length_middle")),
    Column("order", lambda one: YES[one.ordered("length_middle")]),
    Column("tokens, end", lambda one: _means(one, "length_end")),
    Column("order", lambda one: YES[one.ordered("length_end")]),
    Column("accepts at once, end", lambda one: _means(one, "short_end")),
    Column("three regimes", lambda one: YES[one.three_regimes()]),
)
