"""Tables of an evaluation report. An entry of `SHOWN` is a column of the main table, of slices and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pv_eval.best_of import BestOf
from pv_eval.intervals import Estimate as Mine
from pv_eval.majority import TIES
from pv_eval.report.paper import paper_numbers
from pv_eval.report.summary import Entry, Versus
from pv_judge.agreement import Estimate as Theirs
from pv_judge.pages.blocks import Column, Table
from pv_judge.pages.text import coefficient, estimate, p_value, percent, points, whole

__all__ = [
    "SHOWN",
    "agreement_table",
    "best_of_table",
    "bins_table",
    "lengths_table",
    "main_table",
    "majority_table",
    "metric_name",
    "number_tables",
    "paper_table",
    "slices_table",
    "versus_table",
]

SHOWN = {
    "missing": ("missing", "verdicts, %"),
    "accuracy": ("Avg@n", "accuracy, %"),
    "balanced_accuracy": ("balanced", "accuracy, %"),
    "accuracy_right": ("right proofs", "accuracy, %"),
    "accuracy_wrong": ("wrong proofs", "accuracy, %"),
    "accepted": ("accepted", "votes, %"),
    "precision": ("precision", "right proofs, %"),
    "f1": ("F1", "right proofs, %"),
    "precision_wrong": ("precision", "wrong proofs, %"),
    "f1_wrong": ("F1", "wrong proofs, %"),
}
WIDEST = 6
"""Numbers in a table that fits a page; further ones are in further tables."""
FLOORS = ("accepts everything", "rejects everything", "majority class", "coin")
MOST_SIZES = 12
BEST_OF = (
    ("best-of-k", "a tie is any of them, %"),
    ("if ties are right", "%"),
    ("if ties are wrong", "%"),
    ("oracle", "any of k is right, %"),
    ("random", "%"),
)
OF_SLICES = ("missing", "accuracy", "balanced_accuracy", "accuracy_right", "accuracy_wrong")
VERIFIER: Column[Any] = Column("verifier", lambda row: row[0].name, left=True)


def main_table(entries: Sequence[Entry]) -> Table:
    """A line a verifier, and what verifiers that read no proof would get on the first one's set."""
    columns: list[Column[Entry]] = [
        Column("verifier", lambda entry: entry.name, left=True),
        Column(
            "pairs", lambda entry: f"{entry.evaluation.pairs} of {entry.evaluation.questions}", "of questions"
        ),
        Column("n", lambda entry: _span(entry.evaluation.samples), "votes a pair"),
        *(
            Column(title, lambda entry, name=name: _share(entry.evaluation.metrics[name]), unit)
            for name, (title, unit) in SHOWN.items()
        ),
    ]
    table = Table.of(columns, entries)
    floors = [
        [f"({name})", "", "", *(percent(values[metric]) for metric in SHOWN)]
        for name, values in entries[0].evaluation.floors.items()
        if name in FLOORS
    ]
    return replace(table, rows=[*table.rows, *floors])


def number_tables(entries: Sequence[Entry]) -> list[Table]:
    """The main table in parts that fit a screen of 1280 pixels and a sheet of A4."""
    table = main_table(entries)
    first = len(table.columns) - len(SHOWN)  # verifier, pairs, n
    places = [[*range(first), *range(first, first + WIDEST)]]
    places += [
        [0, *range(start, min(start + WIDEST, len(table.columns)))]
        for start in range(first + WIDEST, len(table.columns), WIDEST)
    ]
    return [table.part(chosen) for chosen in places]


def paper_table(entries: Sequence[Entry], set_name: str) -> Table | None:
    """Ours beside the paper's of the same set; None where the paper has none."""
    printed = paper_numbers(set_name)
    if not printed:
        return None
    ours = [
        (entry.name, "", _share(entry.evaluation.metrics["accuracy"]), "measured here")
        for entry in entries
        if entry.info.set_name == set_name
    ]
    theirs = [(row.model, row.slice, f"{row.percent:.1f}", f"the paper, {row.table}") for row in printed]
    columns: list[Column[tuple[str, str, str, str]]] = [
        Column("verifier", lambda row: row[0], left=True),
        Column("part", lambda row: row[1], left=True),
        Column("Avg@n", lambda row: row[2], "%"),
        Column("whose number", lambda row: row[3]),
    ]
    return Table.of(columns, [*ours, *theirs], repeated=2)


def majority_table(entries: Sequence[Entry]) -> Table:
    """maj@k, ties as coins, with the bounds."""
    titles = (("maj@k", "a tie is a coin, %"), ("if ties are right", "%"), ("if ties are wrong", "%"))
    columns: list[Column[tuple[Entry, Any]]] = [
        VERIFIER,
        Column("k", lambda row: str(row[1][0])),
        *(
            Column(title, lambda row, ties=ties: _share(row[1][1][ties]), unit)
            for ties, (title, unit) in zip(TIES, titles, strict=True)
        ),
    ]
    return Table.of(
        columns, [(entry, found) for entry in entries for found in entry.evaluation.majority.items()]
    )


def slices_table(entries: Sequence[Entry]) -> Table | None:
    """A line a slice and verifier; None where there are no slices."""
    lines = [
        (entry, part)
        for name in dict.fromkeys(part.name for entry in entries for part in entry.evaluation.slices)
        for entry in entries
        for part in entry.evaluation.slices
        if part.name == name
    ]
    columns: list[Column[tuple[Entry, Any]]] = [
        Column("slice", lambda row: row[1].name or "(no slice)", left=True),
        VERIFIER,
        Column("pairs", lambda row: f"{row[1].pairs} of {row[1].questions}", "of questions"),
        Column("right", lambda row: str(row[1].right), "proofs"),
        *(
            Column(SHOWN[name][0], lambda row, name=name: _share(row[1].metrics[name]), SHOWN[name][1])
            for name in OF_SLICES
        ),
    ]
    return Table.of(columns, lines, repeated=2) if lines else None


def bins_table(entries: Sequence[Entry]) -> Table:
    """The reliability table."""
    columns: list[Column[tuple[Entry, Any]]] = [
        VERIFIER,
        Column(
            "bin", lambda row: f"{row[1].low:.2f} to {row[1].high:.2f}", "share of accepting votes", left=True
        ),
        Column("pairs", lambda row: str(row[1].pairs)),
        Column("mean share", lambda row: coefficient(row[1].share)),
        Column("right proofs", lambda row: _coefficient(row[1].right), "share"),
    ]
    lines = [(entry, one) for entry in entries for one in entry.evaluation.calibration.bins]
    return Table.of(columns, lines, repeated=2)


def lengths_table(entries: Sequence[Entry], unit: str) -> Table:
    """A line a kind of vote and verifier, for verifiers whose lengths are in one unit."""
    columns: list[Column[tuple[Entry, Any]]] = [
        VERIFIER,
        Column("votes", lambda row: row[1].kind, "verdict, or right and wrong", left=True),
        Column("number", lambda row: str(row[1].votes)),
        Column(
            "mean", lambda row: estimate(row[1].mean.value, row[1].mean.low, row[1].mean.high, whole), unit
        ),
        Column("10 %", lambda row: whole(row[1].low), "are shorter"),
        Column("median", lambda row: whole(row[1].median)),
        Column("10 %", lambda row: whole(row[1].high), "are longer"),
    ]
    lines = [(entry, row) for entry in entries for row in entry.evaluation.lengths]
    return Table.of(columns, lines, repeated=2)


def agreement_table(entries: Sequence[Entry]) -> Table:
    """Agreement with the labels, and calibration."""
    columns: list[Column[Entry]] = [
        Column("verifier", lambda entry: entry.name, left=True),
        Column("agreement", lambda one: _share(one.evaluation.agreement.raw), "of majority and label, %"),
        Column("kappa", lambda one: _coefficient(one.evaluation.agreement.kappa)),
        Column("AC1", lambda one: _coefficient(one.evaluation.agreement.ac1)),
        Column("ties", lambda one: str(one.evaluation.majority_kinds.get("tied", 0)), "pairs"),
        Column("Brier", lambda one: _coefficient(one.evaluation.calibration.brier), "of vote shares"),
        Column("ECE", lambda one: _coefficient(one.evaluation.calibration.ece)),
    ]
    return Table.of(columns, entries)


def best_of_table(entries: Sequence[Entry]) -> Table | None:
    """For k = 1, 2, 4, ... and the last; None where no verifier has a choice."""
    lines = [
        (entry, (k, entry.best_of))
        for entry in entries
        if entry.best_of is not None
        for k in _sizes(entry.best_of)
    ]
    titles = dict(zip((*TIES, "oracle", "random"), BEST_OF, strict=True))
    columns: list[Column[tuple[Entry, Any]]] = [
        VERIFIER,
        Column("k", lambda row: str(row[1][0])),
        *(
            Column(title, lambda row, name=name: _share(row[1][1].curves[name][row[1][0] - 1]), unit)
            for name, (title, unit) in titles.items()
        ),
    ]
    return Table.of(columns, lines) if lines else None


def versus_table(versus: Versus) -> Table:
    """Differences of a pair of verifiers."""
    found = versus.comparison
    tests = found.sign_flip_p
    columns: list[Column[str]] = [
        Column("metric", metric_name, left=True),
        Column("difference", lambda name: _interval(found.differences[name], points), "points"),
        Column("p", lambda name: p_value(tests[name]) if name in tests else "", "by question"),
        Column("test", lambda name: found.tests.get(name, ""), left=True),
    ]
    return Table.of(columns, SHOWN)


def metric_name(name: str) -> str:
    """One of `SHOWN` as tables name it, with its unit: `wrong proofs, accuracy`."""
    return ", ".join(SHOWN[name]).removesuffix(", %")


def _sizes(best_of: BestOf) -> list[int]:
    last = best_of.sizes[-1]
    return sorted({2**power for power in range(MOST_SIZES) if 2**power <= last} | {last})


def _span(samples: tuple[int, int]) -> str:
    return str(samples[0]) if samples[0] == samples[1] else f"{samples[0]} to {samples[1]}"


def _interval(found: Mine | Theirs, show: Callable[[float], str]) -> str:
    return estimate(found.value, found.low, found.high, show)


def _share(found: Mine | Theirs) -> str:
    return _interval(found, percent)


def _coefficient(found: Mine | Theirs) -> str:
    return _interval(found, coefficient)
