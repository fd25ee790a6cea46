"""Page of the board: verifiers by sets, each set in detail, and where every number is from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from pv_eval.board.entries import Entry
from pv_eval.board.measure import Board, Cell, Column
from pv_eval.intervals import Estimate
from pv_eval.provenance import UNKNOWN
from pv_judge.pages.blocks import Block, Heading, Items, Paragraph, Table
from pv_judge.pages.blocks import Column as TableColumn
from pv_judge.pages.text import MISSING, estimate, number, p_value, percent, plain, plural, points, whole

__all__ = ["blocks", "main_table"]

MEASURES = {"balanced_accuracy": "balanced accuracy, %", "accuracy": "accuracy, %"}
DEFINITIONS = (
    "Balanced accuracy: the mean of the accuracies on right and on wrong proofs, 50 % for a verifier that accepts "
    "everything. Avg@n: mean share of the n votes on a proof that are its label; any n has the same expectation. A "
    "vote without a verdict is wrong.",
    "Runs share a column only if the ids, questions, labels, grades, first wrong steps and weights of all pairs are "
    "the same; a set's fingerprint is their hash. Runs of one name are different verifiers where revision, "
    "temperature, prompt or sampling differ.",
    "p: by question (sign flips, or t where few questions differ), on the pairs that both verifiers voted on. Holm: p "
    "corrected for all verifiers of the set. Differences to the best of a set are too large, because it is the best "
    "on these very pairs.",
    "Cost: mean of a verdict, in tokens as the server counted them and in USD at the prices that were given.",
)
COSTS = 4
"""Columns behind the sets: votes, tokens, USD, date."""
FEW, MOST = 5, 7
"""Sets of a main table that is whole, and of a part."""
Row: TypeAlias = "TableColumn[Any]"


def blocks(board: Board) -> Iterator[Block]:
    """All of it; the first block is the title."""
    yield Heading("Proof verifiers", level=1)
    yield Paragraph(
        f"{plural(len(board.verifiers), 'verifier')} on {plural(len(board.columns), 'set')}, with "
        f"{100 * board.how.level:g} % intervals over questions. Made from votes by pv-eval board."
    )
    yield from _main_tables(board)
    if board.means:
        yield Paragraph(
            "The mean over sets is of verifiers that were run on every set; each set counts alike.",
            tone="dim",
        )
    for column in board.columns:
        yield from _set_blocks(column)
    yield Heading("Runs")
    yield _runs_table(board)
    if board.refused:
        yield Heading("Folders that are not on the board")
        yield Items([f"{one.folder}: {one.reason}" for one in board.refused])
    yield Heading("What the numbers are")
    yield Items(DEFINITIONS)


def main_table(board: Board) -> Table:
    """A line a verifier, a column a set."""
    cells = {
        verifier: [cell for column in board.columns if (cell := column.cell(verifier)) is not None]
        for verifier in board.verifiers
    }

    def of_set(column: Column) -> Row:
        def show(verifier: str) -> str:
            cell = column.cell(verifier)
            return "" if cell is None else _share(cell.numbers[column.decides])

        return TableColumn(column.on.name, show, MEASURES[column.decides])

    def overall(show: Callable[[Cell], float], form: Callable[[float], str]) -> Callable[[str], str]:
        """Mean over a verifier's runs by their numbers of votes."""

        def mean(verifier: str) -> str:
            votes = [len(cell.entry.counts.votes) for cell in cells[verifier]]
            total = sum(show(cell) * n for cell, n in zip(cells[verifier], votes, strict=True))
            return form(total / sum(votes))

        return mean

    means = [TableColumn[str]("mean", lambda one: _mean(board, one), "over sets, %")] if board.means else []
    columns: list[Row] = [
        TableColumn("verifier", lambda one: one, left=True),
        *means,
        TableColumn("missing", overall(lambda cell: cell.numbers["missing"].value, percent), "verdicts, %"),
        *(of_set(column) for column in board.columns),
        TableColumn("n", lambda one: _span([cell.entry for cell in cells[one]]), "votes a pair"),
        TableColumn("tokens", overall(lambda cell: cell.entry.cost.answer_tokens, whole), "of an answer"),
        TableColumn("USD", overall(lambda cell: cell.entry.cost.usd, number), "a verdict"),
        TableColumn("last run", lambda one: _last([cell.entry.date for cell in cells[one]])),
    ]
    return Table.of(columns, board.verifiers)


def _main_tables(board: Board) -> list[Table]:
    """The main table, of many sets in parts that fit a screen of 1280 pixels and a sheet of A4."""
    table = main_table(board)
    if len(board.columns) <= FEW:
        return [table]
    last = len(table.columns) - COSTS
    first = last - len(board.columns)
    sets = [range(start, min(start + MOST, last)) for start in range(first, last, MOST)]
    chosen = [[*range(first), *sets[0]], *([0, *one] for one in sets[1:]), [0, *range(last, last + COSTS)]]
    return [table.part(places) for places in chosen]


def _mean(board: Board, verifier: str) -> str:
    return _share(board.means[verifier]) if verifier in board.means else MISSING


def _span(entries: Sequence[Entry]) -> str:
    sizes = [int(n) for entry in entries for n in (entry.counts.samples.min(), entry.counts.samples.max())]
    return str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _last(dates: Sequence[str]) -> str:
    return max((one for one in dates if one != UNKNOWN), default=UNKNOWN)


def _set_blocks(column: Column) -> Iterator[Block]:
    on = column.on
    largest = max((cell.entry.counts for cell in column.cells), key=lambda counts: len(counts.pairs))
    right = int(largest.label.sum())
    yield Heading(on.name)
    against = (
        f"Differences are to {column.reference}." if column.reference else "The reference has no run here."
    )
    yield Paragraph(
        f"{plural(on.pairs, 'pair')} of {plural(len(largest.questions), 'question')}, {right} right and "
        f"{len(largest.pairs) - right} wrong proofs that were voted on; fingerprint {on.fingerprint}. {against}"
    )
    yield _set_table(column)
    notes = [
        f"{cell.entry.verifier}: {text}" for cell in column.cells for text in _notes(cell, column) if text
    ]
    if notes:
        yield Items(notes)


def _notes(cell: Cell, column: Column) -> Iterator[str]:
    number, versus = cell.numbers[column.decides], cell.versus
    voted = len(cell.entry.counts.pairs)
    if voted < column.on.pairs:
        yield (
            f"voted on {voted} of the {plural(column.on.pairs, 'pair')} only, which may be easier or "
            "harder than the others."
        )
    if number.note:
        yield f"{MEASURES[column.decides].removesuffix(', %')}: {number.note}."
    if versus is not None and versus.reason:
        yield f"not compared. {plain(versus.reason, 300)}"


def _set_table(column: Column) -> Table:
    def versus(cell: Cell, show: Callable[[Any], str]) -> str:
        return "" if cell.versus is None else show(cell.versus)

    extra = dict.fromkeys(title for cell in column.cells for title in cell.entry.extra)
    other = {"accuracy": ("Avg@n", "accuracy, %")} if column.decides != "accuracy" else {}
    other |= {
        "accuracy_right": ("right proofs", "accuracy, %"),
        "accuracy_wrong": ("wrong proofs", "accuracy, %"),
    }
    columns: list[Row] = [
        TableColumn("verifier", lambda cell: cell.entry.verifier, left=True),
        TableColumn("n", lambda cell: _span([cell.entry])),
        TableColumn("missing", lambda cell: percent(cell.numbers["missing"].value), "%"),
        TableColumn(
            MEASURES[column.decides].removesuffix(", %"),
            lambda cell: _share(cell.numbers[column.decides]),
            "%",
        ),
        TableColumn(
            "difference",
            lambda cell: versus(
                cell,
                lambda one: estimate(one.difference.value, one.difference.low, one.difference.high, points),
            ),
            "points",
        ),
        TableColumn("p", lambda cell: versus(cell, lambda one: p_value(one.p)), "by question"),
        TableColumn("p", lambda cell: versus(cell, lambda one: p_value(one.holm)), "Holm"),
        *(
            TableColumn(title, lambda cell, name=name: _share(cell.numbers[name]), unit)
            for name, (title, unit) in other.items()
        ),
        *(
            TableColumn(
                title,
                lambda cell, title=title: (
                    _extra(cell.entry.extra[title]) if title in cell.entry.extra else ""
                ),
            )
            for title in extra
        ),
        TableColumn("prompt", lambda cell: whole(cell.entry.cost.prompt_tokens), "tokens"),
        TableColumn("answer", lambda cell: whole(cell.entry.cost.answer_tokens), "tokens"),
        TableColumn("USD", lambda cell: number(cell.entry.cost.usd), "a verdict"),
    ]
    return Table.of(columns, column.cells)


def _runs_table(board: Board) -> Table:
    columns: list[Row] = [
        TableColumn("verifier", lambda one: one.verifier, left=True),
        TableColumn("set", lambda one: one.on.name, left=True),
        TableColumn("date", lambda one: one.date, "UTC"),
        TableColumn("pv-eval", lambda one: one.version),
        TableColumn("commit", lambda one: one.commit),
        TableColumn("revision", lambda one: one.revision, "of the model", left=True),
        TableColumn("prompt", lambda one: one.prompt, left=True),
        TableColumn(
            "temperature",
            lambda one: MISSING if one.info.temperature is None else f"{one.info.temperature:g}",
        ),
        TableColumn("seed", lambda one: MISSING if one.info.seed is None else str(one.info.seed)),
        TableColumn("run", lambda one: one.folder, "folder", left=True),
    ]
    of_board = [
        cell.entry for name in board.verifiers for column in board.columns if (cell := column.cell(name))
    ]
    return Table.of(columns, of_board, repeated=2)


def _share(one: Estimate) -> str:
    return estimate(one.value, one.low, one.high, percent)


def _extra(one: Estimate) -> str:
    return estimate(one.value, one.low, one.high)
