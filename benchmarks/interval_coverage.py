"""Do intervals of 95 % hold the truth in 95 % of sets, and do tests at .05 and .01 err in 5 % and 1 %?

Simulated sets: each question has a difficulty of its own, with an intra-question correlation of 0.25, and each proof 8
votes. `even` has 3 proofs a question, half of them wrong; `uneven` 1 to 9 proofs, one in ten wrong; `one large` is
`even` with one question that has half of all pairs. The two verifiers of a difference or of a test are alike, and share
more than half of the difficulty. Intervals and tests are those of pv_eval; `BCa` is scipy's bootstrap of accuracy with
500 resamples. A cell is a pair, of verifiers that are right with probability .67 and .92. Where a number has an
interval in fewer than 99 % of the sets (it is undefined in the others), their share follows; coverage is of these.

    .venv/bin/python benchmarks/interval_coverage.py                          # 15 minutes on one core
    .venv/bin/python benchmarks/interval_coverage.py --sizes 5,18 --sets 200  # seconds
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from pv_eval.calibration import calibration
from pv_eval.counts import VoteCounts
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.metrics import METRICS, class_sums
from pv_eval.paired import metric_differences, question_test
from pv_eval.ranking import rank_by

SIZES = (5, 10, 18, 51, 145, 300)
ACCURACIES = (0.67, 0.92)
DESIGNS = ("even", "uneven", "one large")
SHOWN = ("accuracy", "balanced_accuracy", "f1")
DIFFERENCES = ("accuracy", "balanced_accuracy")
VOTES = 8
COMMON, OWN = 6.0, 7.0
"""Sums of the parameters of the beta distributions of the common difficulty, and of a verifier's own around it: the
correlation in a question is 1/(1 + 6) + 6/7 * 1/(1 + 7) = 0.25."""
HOW = Intervals(flips=1000)


def draw(
    rng: np.random.Generator, design: str, questions: int, accuracy: float
) -> tuple[VoteCounts, VoteCounts]:
    """Two verifiers, equally good, on one set."""
    proofs = rng.integers(1, 10, questions) if design == "uneven" else np.full(questions, 3)
    if design == "one large":
        proofs[0] = proofs[1:].sum()
    question = np.repeat(np.arange(questions), proofs)
    label = rng.random(len(question)) >= (0.1 if design == "uneven" else 0.5)
    hard = rng.beta(accuracy * COMMON, (1 - accuracy) * COMMON, (2, questions))
    found = []
    for _ in range(2):
        skill = rng.beta(np.maximum(hard * OWN, 1e-3), np.maximum((1 - hard) * OWN, 1e-3))  # (2, questions)
        right = rng.binomial(VOTES, skill[label.astype(int), question])
        accepted = np.where(label, right, VOTES - right)
        found.append(
            VoteCounts(
                pairs=(),
                votes=(),
                questions=tuple(map(str, range(questions))),
                question=question,
                label=label,
                weight=np.ones(len(label)),
                accepted=accepted,
                rejected=VOTES - accepted,
                missing=np.zeros_like(accepted),
                pair_of_vote=np.zeros(0, dtype=int),
            )
        )
    return found[0], found[1]


def measure(one: VoteCounts, two: VoteCounts, how: Intervals = HOW) -> dict[str, Estimate]:
    found = estimate_all(class_sums(one), METRICS, how)
    found = {name: found[name] for name in SHOWN}
    found["auroc"] = rank_by(one, how).auroc
    found["brier"] = calibration(one, how).brier
    differences = metric_differences(one, two, how)
    return found | {f"difference of {name}": differences[name] for name in DIFFERENCES}


def bca(one: VoteCounts, seed: int) -> Estimate:
    from scipy.stats import bootstrap

    number = len(one.questions)
    sums = [np.bincount(one.question, weights=values, minlength=number) for values in (one.right, one.weight)]
    value = float(sums[0].sum() / sums[1].sum())
    if value in (0.0, 1.0):
        return Estimate(value=value)
    ends = bootstrap(
        sums,
        lambda x, n, axis: x.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=500,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value=value, low=float(ends.low), high=float(ends.high))


def coverage(
    design: str, questions: int, accuracy: float, sets: int, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """By number: share of the intervals that hold the truth, and share of the sets that have an interval."""
    rng = np.random.default_rng([seed, questions, round(100 * accuracy), DESIGNS.index(design)])
    # a large question has the same distribution as others, so the truth is that of the even design
    large = draw(rng, "even" if design == "one large" else design, 40_000, accuracy)
    truth = {name: one.value for name, one in measure(*large, Intervals(flips=0)).items()}
    truth |= {name: 0.0 for name in truth if name.startswith("difference")} | {"accuracy (BCa)": accuracy}
    held = dict.fromkeys(truth, 0)
    known = dict.fromkeys(truth, 0)
    for number in range(sets):
        one, two = draw(rng, design, questions, accuracy)
        for name, found in (measure(one, two) | {"accuracy (BCa)": bca(one, number)}).items():
            known[name] += not math.isnan(found.low)
            held[name] += found.low <= truth[name] <= found.high
    return {name: (held[name] / max(known[name], 1), known[name] / sets) for name in truth}


def false_positives(
    design: str, questions: int, accuracy: float, sets: int, seed: int = 1
) -> dict[str, tuple[float, float]]:
    """By test: share of p up to .05 and up to .01, of verifiers that are alike."""
    rng = np.random.default_rng([seed, questions, round(100 * accuracy), DESIGNS.index(design)])
    p: dict[str, list[float]] = {"accuracy": [], "balanced accuracy": []}
    for _ in range(sets):
        one, two = draw(rng, design, questions, accuracy)
        for name, values in p.items():
            values.append(question_test(one, two, HOW, by_class=name != "accuracy")[0])
    return {name: tuple(float(np.mean(np.array(v) <= a)) for a in (0.05, 0.01)) for name, v in p.items()}  # pyright: ignore[reportReturnType]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of questions")
    parser.add_argument("--sets", type=int, default=1000, help="simulated sets a cell")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    print(f"Coverage of 95 % intervals, {options.sets} sets a cell, at accuracy .67 / .92, in %\n")
    for design in DESIGNS:
        rows = {size: [coverage(design, size, a, options.sets) for a in ACCURACIES] for size in sizes}
        names = list(rows[sizes[0]][0])
        _line([f"{design}: questions", *names])
        _line(["---"] * (len(names) + 1))
        for size, cells in rows.items():
            _line([str(size), *(" / ".join(_cell(*cell[name]) for cell in cells) for name in names)])
        print()
    print(f"False positives at .05 (and .01), {options.sets} sets a cell, at accuracy .67 / .92, in %\n")
    names = [f"{design}: {test}" for design in DESIGNS for test in ("accuracy", "balanced accuracy")]
    _line(["questions", *names])
    _line(["---"] * (len(names) + 1))
    for size in sizes:
        by_design = [
            [false_positives(design, size, a, options.sets) for a in ACCURACIES] for design in DESIGNS
        ]
        cells = [
            " / ".join(f"{100 * cell[test][0]:.1f} ({100 * cell[test][1]:.1f})" for cell in both)
            for both in by_design
            for test in both[0]
        ]
        _line([str(size), *cells])


def _cell(held: float, known: float) -> str:
    return f"{100 * held:.1f}" + (f" (of {100 * known:.0f})" if known < 0.99 else "")


def _line(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
