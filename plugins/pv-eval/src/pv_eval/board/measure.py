"""Numbers of the board: a cell for each verifier and set, paired differences within a set, means over sets.

Within a set each verifier is compared with the reference, on the pairs that both voted on (`pv_eval.paired`): with the
best of the set, or with a verifier that the user names. With V verifiers there are V - 1 tests in a set, so p is also
given after Holm's correction,

    p_(i) of m sorted p values becomes max over j <= i of min(1, (m - j + 1) p_(j))

which keeps the chance of any false difference in a set below the level, whatever the dependence of the tests.

Example: p = 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06.

Source: S. Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pv_eval.board.entries import Entry, Refused, SetName
from pv_eval.counts import Columns, Floats, Statistic, Sums
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.metrics import METRICS, class_sums
from pv_eval.paired import compare
from pv_judge.pages.text import natural
from pv_rl.errors import ConfigError, DataError

__all__ = ["NUMBERS", "Board", "Cell", "Column", "Versus", "holm", "measure"]

NUMBERS = ("balanced_accuracy", "accuracy", "accuracy_right", "accuracy_wrong", "missing")


@dataclass(frozen=True, kw_only=True)
class Versus:
    """A verifier against the reference of the set."""

    difference: Estimate
    """Of the set's deciding number, verifier minus reference."""
    p: float
    holm: float
    """p after Holm's correction for all verifiers of the set."""
    pairs: int
    """That both voted on."""
    reason: str = ""
    """Why the two cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A verifier on a set."""

    entry: Entry
    numbers: Mapping[str, Estimate]
    """By the names of `NUMBERS`."""
    versus: Versus | None
    """None for the reference, and where the set has none."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A set."""

    on: SetName
    decides: str
    """`balanced_accuracy`, or `accuracy` where the set has one class only."""
    reference: str
    """The verifier that the others are compared with; empty if the one that was named has no run on the set."""
    cells: tuple[Cell, ...]
    """The best first."""

    def cell(self, verifier: str) -> Cell | None:
        """That of a verifier, if it was run on the set."""
        return next((cell for cell in self.cells if cell.entry.verifier == verifier), None)


@dataclass(frozen=True, kw_only=True)
class Board:
    verifiers: tuple[str, ...]
    """Those with the best mean first."""
    columns: tuple[Column, ...]
    means: Mapping[str, Estimate]
    """Of the deciding numbers, for verifiers that were run on every set; empty for a single set."""
    against: str
    """The verifier that was named as reference, or empty: the best of each set."""
    refused: tuple[Refused, ...]
    how: Intervals


def measure(
    entries: Sequence[Entry], how: Intervals, *, against: str = "", refused: Sequence[Refused] = ()
) -> Board:
    """Compute the board.

    Args:
        entries: one or more.
        how: of the intervals.
        against: a verifier's name in tables, or its own name if only one verifier has it; empty for the best.
        refused: repeated on the board.

    Raises:
        ConfigError: no verifier, or several, have the name `against`.
    """
    named = _find(entries, against) if against else ""
    sets = sorted({entry.on.name: entry.on for entry in entries}.values(), key=lambda on: natural(on.name))
    columns = [_column([entry for entry in entries if entry.on == on], how, named) for on in sets]
    verifiers = list(dict.fromkeys(entry.verifier for entry in entries))
    means = _means(verifiers, columns, how) if len(columns) > 1 else {}

    def rank(verifier: str) -> tuple[float, list[tuple[int, float, str]]]:
        value = means[verifier].value if verifier in means else _only(columns, verifier)
        return _downwards(value), natural(verifier)

    return Board(
        verifiers=tuple(sorted(verifiers, key=rank)),
        columns=tuple(columns),
        means=means,
        against=named,
        refused=tuple(refused),
        how=how,
    )


def _downwards(value: float) -> float:
    """A key that sorts the largest first, and what is undefined last."""
    return math.inf if math.isnan(value) else -value


def _only(columns: Sequence[Column], verifier: str) -> float:
    """The number of the only set; numbers of several sets are not ranked against each other."""
    cell = columns[0].cell(verifier) if len(columns) == 1 else None
    return math.nan if cell is None else cell.numbers[columns[0].decides].value


def _find(entries: Sequence[Entry], name: str) -> str:
    verifiers = {entry.verifier: entry.info.verifier for entry in entries}
    found = [one for one, own in verifiers.items() if own == name]
    if name in verifiers:
        return name
    if len(found) != 1:
        raise ConfigError(
            f"--against {name!r:.80}: {len(found)} verifiers have this name; expected one of "
            + ", ".join(repr(one) for one in list(verifiers)[:20])
        )
    return found[0]


def _column(entries: Sequence[Entry], how: Intervals, against: str) -> Column:
    both = any(len({pair.label for pair in entry.counts.pairs}) == 2 for entry in entries)
    decides = "balanced_accuracy" if both else "accuracy"
    numbers = {
        entry.verifier: estimate_all(class_sums(entry.counts), {one: METRICS[one] for one in NUMBERS}, how)
        for entry in entries
    }

    def rank(entry: Entry) -> tuple[float, list[tuple[int, float, str]]]:
        return _downwards(numbers[entry.verifier][decides].value), natural(entry.verifier)

    ordered = sorted(entries, key=rank)
    first = next((one for one in ordered if one.verifier == against), None) if against else ordered[0]
    others = [entry for entry in ordered if first is not None and entry is not first]
    versus = [_versus(first, entry, how, decides) for entry in others if first is not None]
    corrected = holm([one.p for one in versus])
    by_name = {
        entry.verifier: Versus(difference=one.difference, p=one.p, holm=p, pairs=one.pairs, reason=one.reason)
        for entry, one, p in zip(others, versus, corrected, strict=True)
    }
    return Column(
        on=entries[0].on,
        decides=decides,
        reference="" if first is None else first.verifier,
        cells=tuple(
            Cell(
                entry=entry,
                numbers=numbers[entry.verifier],
                versus=by_name.get(entry.verifier),
            )
            for entry in ordered
        ),
    )


def _versus(first: Entry, second: Entry, how: Intervals, decides: str) -> Versus:
    try:
        found = compare(first.counts, second.counts, how, only=(decides,))
    except DataError as error:
        nothing = Estimate(value=math.nan)
        return Versus(difference=nothing, p=math.nan, holm=math.nan, pairs=0, reason=str(error))
    p = found.sign_flip_p[decides]
    return Versus(difference=found.differences[decides], p=p, holm=p, pairs=found.pairs)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction, above. NaN is no test: it stays NaN and does not count."""
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        corrected[place] = highest
    return corrected


def _means(verifiers: Sequence[str], columns: Sequence[Column], how: Intervals) -> dict[str, Estimate]:
    """Intervals are over the questions of all sets together: a row of the table is a question of one set."""
    found = {}
    for verifier in verifiers:
        cells = [column.cell(verifier) for column in columns]
        sums = [class_sums(cell.entry.counts) for cell in cells if cell is not None]
        if len(sums) < len(columns):
            continue
        names = tuple(f"{place} {name}" for place, one in enumerate(sums) for name in one.names)
        table = np.zeros((sum(len(one.table) for one in sums), len(names)))
        row = 0
        for place, one in enumerate(sums):
            height, width = one.table.shape
            table[row : row + height, place * width : (place + 1) * width] = one.table
            row += height
        statistic = _mean([METRICS[column.decides] for column in columns], sums[0].names)
        found[verifier] = estimate_all(Sums(names=names, table=table), {"mean": statistic}, how)["mean"]
    return found


def _mean(statistics: Sequence[Statistic], names: Sequence[str]) -> Statistic:
    def mean(s: Columns) -> Floats:
        each = [
            statistic({name: s[f"{place} {name}"] for name in names})
            for place, statistic in enumerate(statistics)
        ]
        return np.mean(each, axis=0)

    return mean
