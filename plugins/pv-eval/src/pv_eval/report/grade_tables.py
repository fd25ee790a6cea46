"""Tables of grades and of first wrong steps, for the report and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pv_eval.best_of import BestOf
from pv_eval.graded import FLOORS, GradeComparison, Graded, GradeVersus
from pv_eval.intervals import Estimate
from pv_eval.steps import Steps
from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Table
from pv_judge.pages.text import MISSING, coefficient, estimate, p_value, percent, plural, points

__all__ = ["grade_blocks", "step_blocks", "upright"]

Line: TypeAlias = "tuple[str, str, Mapping[str, Estimate]]"
"""Verifier, answers that were measured, and the numbers."""
Shown: TypeAlias = "Sequence[tuple[str, str, str, Callable[[float], str]]]"
"""Of columns: metric, title, unit, and how a number is written."""


def _points(value: float) -> str:
    return f"{value + 0.0:.2f}"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


DISTANCE: Shown = (
    ("mae_points", "MAE", "points", _points),
    ("mae", "MAE", "% of full points", percent),
    ("rmse_points", "RMSE", "points", _points),
    ("bias_points", "bias", "points", _signed),
    ("score", "score", "1 - |y - x|, %", percent),
    ("missing", "missing", "grades, %", percent),
)
AGREEMENT: Shown = (
    ("qwk", "QWK", "", coefficient),
    ("exact", "exact", "%", percent),
    ("within_one", "within one", "grade, %", percent),
    ("accuracy", "accuracy", "accepted or not, %", percent),
    ("balanced_accuracy", "balanced", "accuracy, %", percent),
)
COMPARED: Shown = (
    ("mae_points", "MAE", "points", _signed),
    ("qwk", "QWK", "", lambda value: f"{round(value, 3) + 0.0:+.3f}"),
    ("exact", "exact", "% points", points),
    ("within_one", "within one grade", "% points", points),
)
RANKS: Shown = (
    ("spearman", "Spearman", "all pairs", coefficient),
    ("kendall", "tau-b", "all pairs", coefficient),
    ("kendall_within", "tau-b", "within a question", coefficient),
)
STEPS: Shown = (
    ("f1", "F1", "ProcessBench, %", percent),
    ("exact_wrong", "wrong proofs", "step is exact, %", percent),
    ("exact_right", "right proofs", "none is named, %", percent),
    ("exact", "exact", "all proofs, %", percent),
    ("within_one", "within one", "step, %", percent),
    ("found", "found", "wrong proofs, some step, %", percent),
    ("accuracy", "accuracy", "right or wrong, %", percent),
    ("missing", "missing", "answers, %", percent),
)
MOST_SIZES = 12
DEFINITIONS = (
    "Grades: x the human's, y the verifier's, as shares of the full points; each pair counts once, by the mean of its "
    "votes. MAE, RMSE, bias (above 0: too generous) and QWK are over votes with a grade; in score, exact, within one "
    "and accuracy a missing grade is wrong.",
    "QWK: 1 - E(y - x)^2 / D, D the same if y were drawn without looking at the proof; 0 for a constant grade.",
    "Mean of votes: of the votes with a grade; exact, within one and accuracy take the nearest allowed grade. Rank "
    "correlations are of this mean.",
    "Always the mean, median, most frequent grade: constants that are the best ones on this very set.",
)
OF_STEPS = (
    "First wrong step: F1 is the harmonic mean of exact on wrong and on right proofs (ProcessBench). A missing answer "
    "is wrong everywhere. Answer of most votes: tied ones count alike.",
)


def grade_blocks(
    found: Sequence[tuple[str, Graded]],
    against: Sequence[GradeVersus] = (),
    *,
    terminal: bool = False,
) -> Iterator[Block]:
    """Tables of verifiers that gave grades; nothing for none.

    Args:
        found: by the verifier's name.
        against: comparisons of two verifiers.
        terminal: whether to show a metric a line, since a terminal is not wide enough for a line a verifier.
    """
    if not found:
        return
    yield Heading("Grades")
    yield Items([f"{name}: {_about(graded)}" for name, graded in found])
    own = [line for name, graded in found for line in _lines(name, graded)]
    # verifiers on the same set have the same floors
    of_sets = {(line[1], str(line[2])): line for _, graded in found for line in _of_set(graded)}
    lines = [*own, *of_sets.values()]
    own = [line for line in own if "spearman" in line[2]]
    if terminal:
        yield upright(_table(lines, [*DISTANCE, *AGREEMENT, *RANKS]))
    else:
        yield _table(lines, DISTANCE)
        yield _table(lines, AGREEMENT)
        yield _table(own, RANKS)
    for versus in against:
        compared = versus.comparison
        yield Heading(f"Grades of {versus.second} against {versus.first}", level=3)
        yield Paragraph(
            f"{versus.second} minus {versus.first}, on {plural(compared.pairs, 'pair')} of "
            f"{plural(compared.questions, 'question')} that both graded ({plural(compared.left_out, 'other')} left "
            "out), by the means of their votes. p is by the t of the interval."
        )
        yield _against(compared)
    chosen = [(name, one) for name, one in found if one.best_of is not None]
    if chosen:
        yield Heading("Grade of the best of k", level=3)
        yield _best_of(chosen)
    yield Items([*(line for name, one in found for line in _notes(name, one)), *DEFINITIONS])


def step_blocks(found: Sequence[tuple[str, Steps]], *, terminal: bool = False) -> Iterator[Block]:
    """Tables of verifiers that named first wrong steps; nothing for none. Arguments as for grades."""
    if not found:
        return
    yield Heading("First wrong steps")
    yield Items(
        [
            f"{name}: {_size(one)}; {one.wrong} proofs have a wrong step, {one.pairs - one.wrong} none."
            for name, one in found
        ]
    )
    lines: list[Line] = []
    for name, one in found:
        lines += [(name, "each vote", one.of_votes)] if one.samples[1] > 1 else []
        lines.append((name, _joined(one.samples, "answer of most"), one.of_most))
    lines.append(("(floor)", 'always "none"', found[0][1].floor))
    table = _table(lines, STEPS)
    yield upright(table) if terminal else table
    findings = [f"{name}: {problem}" for name, one in found for problem in one.problems]
    notes = [f"{name}: {note}" for name, one in found for note in _reasons(one.of_most, STEPS)]
    yield Items([*findings, *notes, *OF_STEPS])


def upright(table: Table) -> Table:
    """A column for each row of a table whose first two columns name it."""
    titles = [f"{one.title} ({one.unit})" if one.unit else one.title for one in table.columns]
    columns: list[Column[int]] = [
        Column("", lambda place: titles[place], left=True),
        *(Column(str(row[0]), lambda place, row=row: row[place], str(row[1])) for row in table.rows),
    ]
    return Table.of(columns, range(2, len(titles)))


def _table(lines: Sequence[Line], shown: Shown) -> Table:
    columns: list[Column[Line]] = [
        Column("verifier", lambda line: line[0], left=True),
        Column("answers", lambda line: line[1], left=True),
        *(
            Column(title, lambda line, name=name, write=write: _cell(line[2].get(name), write), unit)
            for name, title, unit, write in shown
        ),
    ]
    return Table.of(columns, lines, repeated=2)


def _against(compared: GradeComparison) -> Table:
    columns: list[Column[Any]] = [
        Column("metric", lambda row: f"{row[1]}, {row[2]}" if row[2] else row[1], left=True),
        Column("difference", lambda row: _cell(compared.differences[row[0]], row[3])),
        Column("p", lambda row: p_value(compared.p[row[0]])),
    ]
    return Table.of(columns, COMPARED)


def _cell(found: Estimate | None, write: Callable[[float], str]) -> str:
    return MISSING if found is None else estimate(found.value, found.low, found.high, write)


def _lines(name: str, graded: Graded) -> Iterator[Line]:
    if graded.samples[1] > 1:
        yield name, "each vote", graded.of_votes
    yield name, _joined(graded.samples, "mean of"), graded.of_means


def _of_set(graded: Graded) -> Iterator[Line]:
    """Floors, those of the same grade in one line, and humans."""
    same: dict[str, list[str]] = {}
    for floor in FLOORS:
        same.setdefault(f"always {graded.floor_points[floor]:.3g}", []).append(floor)
    for always, floors in same.items():
        yield "(floor)", f"{always}, the {' and '.join(floors)}", graded.floors[floors[0]]
    if graded.humans is not None:
        yield "(human)", "another grading", graded.humans


def _joined(samples: tuple[int, int], what: str) -> str:
    low, high = samples
    return "the vote" if high == 1 else f"{what} {low if low == high else f'{low} to {high}'} votes"


def _size(one: Graded | Steps) -> str:
    return f"{plural(one.pairs, 'pair')} of {plural(one.questions, 'question')}, {plural(one.votes, 'vote')}"


def _about(graded: Graded) -> str:
    grades = [f"{grade:g}" for grade in graded.grades]
    shown = ", ".join(grades) if len(grades) <= 12 else f"{grades[0]}, {grades[1]}, ..., {grades[-1]}"
    return f"{_size(graded)}; grades {shown}; accepted from {graded.accept:g} on."


def _notes(name: str, graded: Graded) -> Iterator[str]:
    yield from (f"{name}: {problem}" for problem in graded.problems)
    for note in _reasons(graded.of_means, [*DISTANCE, *AGREEMENT, *RANKS]):
        yield f"{name}: {note}"
    if 0 < graded.ranked_within < graded.questions:
        yield (
            f"{name}: tau-b within a question is the mean over {plural(graded.ranked_within, 'question')}; in "
            "the others all grades of the human or of the verifier are the same."
        )
    if graded.humans is not None:
        yield f"{name}: {plural(graded.graded_twice, 'proof')} with several human gradings."


def _reasons(metrics: Mapping[str, Estimate], shown: Shown) -> list[str]:
    """Notes of numbers, each with the numbers that it is about."""
    by_note: dict[str, list[str]] = {}
    for name, title, unit, _ in shown:
        found = metrics[name]
        if found.note and not (name == "missing" and found.value == 0):
            by_note.setdefault(found.note, []).append(f"{title} ({unit})" if unit else title)
    return [f"{', '.join(titles)}: {note}." for note, titles in by_note.items()]


def _best_of(found: Sequence[tuple[str, Graded]]) -> Table:
    """Grade of the picked proof by k, with its bounds, and how often it has full points."""

    def at(k: int, best: BestOf | None, line: str) -> Estimate | None:
        return None if best is None else best.curves[line][k - 1]

    lines = [(name, one, k) for name, one in found if one.best_of is not None for k in _sizes(one.best_of)]
    titles = {
        "picked": ("uniform", "a tie is any of them, points"),
        "if ties are best": ("optimistic", "points"),
        "if ties are worst": ("pessimistic", "points"),
        "oracle": ("oracle", "best of the k, points"),
        "random": ("random", "points"),
    }
    columns: list[Column[Any]] = [
        Column("verifier", lambda row: row[0], left=True),
        Column("k", lambda row: str(row[2])),
        *(
            Column(title, lambda row, line=line: _cell(at(row[2], row[1].best_of, line), _points), unit)
            for title, (line, unit) in titles.items()
        ),
        Column(
            "full points", lambda row: _cell(at(row[2], row[1].best_of_full, "uniform"), percent), "picked, %"
        ),
        Column(
            "full points", lambda row: _cell(at(row[2], row[1].best_of_full, "oracle"), percent), "oracle, %"
        ),
    ]
    return Table.of(columns, lines, repeated=2)


def _sizes(best_of: BestOf) -> list[int]:
    last = best_of.sizes[-1]
    return sorted({2**power for power in range(MOST_SIZES) if 2**power <= last} | {last})
