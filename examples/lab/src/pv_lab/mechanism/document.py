"""Results of the mechanism as Markdown and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

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
    full = [outcome for outcome in outcomes if outcome.experiment.kind != "perturbed"]
    changed = [outcome for outcome in outcomes if outcome.experiment.kind == "perturbed"]
    lines = [
        "Mean over runs and Student's 95 % interval. Middle and end: a tenth of the steps. Accuracy: at the end.",
        "",
        f"| setting | weighting | runs | {' | '.join(HEADS)} |",
        "|" + "---|" * (len(HEADS) + 3),
    ]
    lines += [_arm_row(outcome.experiment.name, arm) for outcome in full for arm in outcome.arms]
    if changed:
        names = [arm.arm.label for arm in changed[0].arms]
        runs = changed[0].arms[0].arm.seeds
        lines += [
            "",
            f"One number changed, means over {runs} runs of {', '.join(names)}. Order: the lengths fall from the first "
            "to the last. Three regimes: at the end the last accepts at once with probability 0.8 or more, the others "
            "with 0.5 or less, and the order is there.",
            "",
            "| changed | tokens, middle | order | tokens, end | order | accepts at once, end | three regimes |",
            "|" + "---|" * 7,
        ]
        lines += [_changed_row(outcome) for outcome in changed]
        kept = [
            sum(outcome.ordered("length_middle") for outcome in changed),
            sum(outcome.ordered("length_end") for outcome in changed),
            sum(outcome.three_regimes() for outcome in changed),
        ]
        of = len(changed)
        lines += [
            "",
            f"Order in the middle: {kept[0]} of {of}. Order at the end: {kept[1]} of {of}. "
            f"Three regimes: {kept[2]} of {of}.",
        ]
    return "\n".join(lines) + "\n"


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


def _arm_row(name: str, arm: ArmOutcome) -> str:
    cells = [_cell(arm.mean(measure), 0 if measure.startswith("length") else 2) for measure in MEASURES]
    return f"| {name} | {arm.arm.label} | {arm.arm.seeds} | {' | '.join(cells)} |"


def _cell(found: MeanOfSeeds, digits: int) -> str:
    if math.isnan(found.mean):
        return "-"
    if found.low is None or found.high is None:
        return f"{found.mean:.{digits}f} (-)"
    return f"{found.mean:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def _changed_row(outcome: Outcome) -> str:
    def means(measure: str, digits: int) -> str:
        return " / ".join(f"{arm.mean(measure).mean:.{digits}f}" for arm in outcome.arms)

    def yes(holds: bool) -> str:
        return "yes" if holds else "no"

    return (
        f"| {outcome.experiment.name} | {means('length_middle', 0)} | {yes(outcome.ordered('length_middle'))} "
        f"| {means('length_end', 0)} | {yes(outcome.ordered('length_end'))} | {means('short_end', 2)} "
        f"| {yes(outcome.three_regimes())} |"
    )
