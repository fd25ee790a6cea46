"""The tables of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pv_eval.majority import TIES
from pv_eval.report.blocks import Grid
from pv_eval.report.numbers import NOTHING, amount, coefficient, p_value, percent, points
from pv_eval.report.paper import paper_numbers
from pv_eval.report.summary import Entry, Summary, Versus

__all__ = [
    "agreement_grid",
    "best_of_grid",
    "bins_grid",
    "lengths_grid",
    "main_grid",
    "majority_grid",
    "paper_grid",
    "sets",
    "slices_grid",
    "versus_grid",
]

SHOWN = {
    "accuracy": ("Avg@n", "accuracy, %"),
    "balanced_accuracy": ("balanced", "accuracy, %"),
    "accuracy_right": ("right proofs", "accuracy, %"),
    "accuracy_wrong": ("wrong proofs", "accuracy, %"),
    "precision": ("precision", "right proofs, %"),
    "f1": ("F1", "right proofs, %"),
    "precision_wrong": ("precision", "wrong proofs, %"),
    "f1_wrong": ("F1", "wrong proofs, %"),
    "missing": ("missing", "verdicts, %"),
    "accepted": ("accepted", "votes, %"),
}
MOST_SIZES = 12


def main_grid(entries: Sequence[Entry]) -> Grid:
    """A line a verifier, and what one that accepts everything would get on the first one's set."""
    lines = [
        [
            entry.name,
            f"{entry.evaluation.pairs} of {entry.evaluation.questions}",
            _span(entry.evaluation.samples),
            *(percent(entry.evaluation.metrics[name]) for name in SHOWN),
        ]
        for entry in entries
    ]
    metrics = entries[0].evaluation.metrics
    floor = {"accuracy": percent(metrics["accuracy_of_always_true"]), "missing": "0.0", "accepted": "100.0"}
    floor |= {"accuracy_right": "100.0", "accuracy_wrong": "0.0", "balanced_accuracy": "50.0"}
    lines.append(["(accepts everything)", "", "", *(floor.get(name, NOTHING) for name in SHOWN)])
    heads = [("verifier", ""), ("pairs", "of questions"), ("n", "votes a pair"), *SHOWN.values()]
    return Grid(leading=1, heads=heads, lines=lines)


def paper_grid(entries: Sequence[Entry], set_name: str) -> Grid | None:
    """Ours beside the paper's of the same set; None where the paper has none."""
    printed = paper_numbers(set_name)
    if not printed:
        return None
    ours = [
        [entry.name, "", percent(entry.evaluation.metrics["accuracy"]), "measured here"]
        for entry in entries
        if entry.info.set_name == set_name
    ]
    theirs = [[row.model, row.slice, f"{row.percent:.1f}", f"the paper, {row.table}"] for row in printed]
    heads = [("verifier", ""), ("part", ""), ("Avg@n", "%"), ("whose number", "")]
    return Grid(leading=2, heads=heads, lines=[*ours, *theirs])


def majority_grid(entries: Sequence[Entry]) -> Grid:
    """maj@k, ties as coins, with the bounds."""
    lines = [
        [entry.name, str(k), *(percent(values[ties]) for ties in TIES)]
        for entry in entries
        for k, values in entry.evaluation.majority.items()
    ]
    heads = [("verifier", ""), ("k", ""), ("maj@k", "a tie is a coin, %"), ("if ties are right", "%")]
    return Grid(leading=1, heads=[*heads, ("if ties are wrong", "%")], lines=lines)


def slices_grid(entries: Sequence[Entry]) -> Grid | None:
    """A line a slice and verifier; None where there are no slices."""
    names = ("accuracy", "balanced_accuracy", "accuracy_right", "accuracy_wrong", "missing")
    lines = [
        [part.name or "(no slice)", entry.name, f"{part.pairs} of {part.questions}", str(part.right)]
        + [percent(part.metrics[metric]) for metric in names]
        for name in dict.fromkeys(part.name for entry in entries for part in entry.evaluation.slices)
        for entry in entries
        for part in entry.evaluation.slices
        if part.name == name
    ]
    heads = [("slice", ""), ("verifier", ""), ("pairs", "of questions"), ("right", "proofs")]
    return Grid(leading=2, heads=[*heads, *(SHOWN[name] for name in names)], lines=lines) if lines else None


def bins_grid(entries: Sequence[Entry]) -> Grid:
    """The reliability table."""
    lines = [
        [
            entry.name,
            f"{one.low:.2f} to {one.high:.2f}",
            str(one.pairs),
            f"{one.share:.3f}",
            coefficient(one.right),
        ]
        for entry in entries
        for one in entry.evaluation.calibration.bins
    ]
    heads = [("verifier", ""), ("bin", "share of accepting votes"), ("pairs", ""), ("mean share", "")]
    return Grid(leading=2, heads=[*heads, ("right proofs", "share")], lines=lines)


def lengths_grid(entries: Sequence[Entry]) -> Grid:
    """A line a kind of vote and verifier."""
    lines = [
        [entry.name, row.kind, str(row.votes), amount(row.mean)]
        + [NOTHING if value != value else f"{value:,.0f}" for value in (row.low, row.median, row.high)]
        for entry in entries
        for row in entry.evaluation.lengths
    ]
    heads = [("verifier", ""), ("votes", "verdict, or right and wrong"), ("number", ""), ("mean", "")]
    return Grid(
        leading=2,
        heads=[*heads, ("10 %", "are shorter"), ("median", ""), ("10 %", "are longer")],
        lines=lines,
    )


def agreement_grid(entries: Sequence[Entry]) -> Grid:
    """Agreement with the labels, and calibration."""
    lines = []
    for entry in entries:
        found, kinds = entry.evaluation.agreement, entry.evaluation.majority_kinds
        scores = entry.evaluation.calibration
        lines.append(
            [
                entry.name,
                percent(found.raw),
                *map(coefficient, (found.kappa, found.ac1)),
                str(kinds.get("tied", 0)),
                *map(coefficient, (scores.brier, scores.ece)),
            ]
        )
    heads = [("verifier", ""), ("agreement", "of majority and label, %"), ("kappa", ""), ("AC1", "")]
    return Grid(
        leading=1, heads=[*heads, ("ties", "pairs"), ("Brier", "of vote shares"), ("ECE", "")], lines=lines
    )


def best_of_grid(entries: Sequence[Entry]) -> Grid | None:
    """For k = 1, 2, 4, ... and the last; None where no verifier has a choice."""
    lines = [list(line) for entry in entries for line in _best_of_lines(entry)]
    heads = [
        ("verifier", ""),
        ("k", ""),
        ("best-of-k", "a tie is any of them, %"),
        ("if ties are right", "%"),
    ]
    heads += [("if ties are wrong", "%"), ("oracle", "any of k is right, %"), ("random", "%")]
    return Grid(leading=1, heads=heads, lines=lines) if lines else None


def versus_grid(versus: Versus) -> Grid:
    """Differences of a pair of verifiers."""
    found = versus.comparison
    if found is None:
        return Grid(leading=1, heads=[("metric", "")], lines=[])
    tests = found.sign_flip_p
    lines = [
        [
            f"{title}, {unit.removesuffix(', %')}",
            points(found.differences[name]),
            p_value(tests[name]) if name in tests else "",
        ]
        for name, (title, unit) in SHOWN.items()
    ]
    return Grid(leading=1, heads=[("metric", ""), ("difference", "points"), ("p", "sign flips")], lines=lines)


def _best_of_lines(entry: Entry) -> Iterator[list[str]]:
    if entry.best_of is None:
        return
    last = entry.best_of.sizes[-1]
    sizes = sorted({2**power for power in range(MOST_SIZES) if 2**power <= last} | {last})
    for k in sizes:
        curves = entry.best_of.curves
        yield [entry.name, str(k), *(percent(curves[line][k - 1]) for line in (*TIES, "oracle", "random"))]


def _span(samples: tuple[int, int]) -> str:
    return str(samples[0]) if samples[0] == samples[1] else f"{samples[0]} to {samples[1]}"


def sets(summary: Summary) -> list[str]:
    """Names of the sets, each once."""
    return list(dict.fromkeys(entry.info.set_name for entry in summary.entries))
