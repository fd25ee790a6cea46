r"""Source `latex`: problems and their solutions in LaTeX files, parsed by pylatexenc.

A file goes through `tex_source` (what LaTeX prints of it, as a tree), `tex_marks` (headings, problems, solutions and
the text between them, in order), `tex_lists` (lists with Putnam labels), `tex_statements` and `tex_match` (which
solution is of which problem). `tex_names` and `tex_openings` read titles and first words.
docs/guides/sources.md summarizes the rules.

A solution that may be another problem's, or that is not right and full by its own words, becomes a rejected row, and
its problem stays without a reference. Macros are not expanded, and `\input` is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem
from pv_data.sources.reading.assemble import Once, attempt, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.files import files
from pv_data.sources.reading.tex import plain
from pv_data.sources.reading.tex_marks import Names
from pv_data.sources.reading.tex_match import parts
from pv_data.sources.reading.tex_names import MODELS, is_ref
from pv_data.sources.reading.tex_openings import doubtful_heading
from pv_data.sources.reading.tex_parts import Loose, Part
from pv_data.sources.reading.tex_source import parse
from pv_data.sources.reading.unusable import FILE_NOT_READ, Unusable, aside
from pv_rl.errors import ConfigError, DataError

__all__ = ["read"]

SOLUTIONS = ("-solutions", "_solutions", "-sol", "_sol", "s")
"""What a file of solutions has behind the name of its problems' file; `s` behind a digit."""
YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
NAME = re.compile(r"[^\W\d_]+|\d+")
SOLVED = re.compile(r"\b(?:solutions?|sols?|solns?|proofs|answers?|s)\b", re.IGNORECASE)
PROBLEMS = re.compile(r"\b(?:problems?|exercises?|questions?)\b", re.IGNORECASE)


def read(
    path: Path,
    *,
    problems: Sequence[str] = ("problem", "exercise", "question"),
    solutions: Sequence[str] = ("solution", "soln", "proof", "answer"),
    boxes: Sequence[str] = ("mdframed",),
    licence: str = "",
    language: str = "",
) -> Read:
    """Problems, and their solutions as ground-truth proofs.

    Args:
        problems: environments that hold a problem.
        solutions: environments that hold a solution.
        boxes: environments of which the first in a section is a problem, and the rest of the section its solution.
        licence: of the texts.
        language: of the texts.
    """
    for name, value in (("problems", problems), ("solutions", solutions), ("boxes", boxes)):
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            raise ConfigError(f"{name}={value!r}; it is a list of names of environments")
    own = [
        frozenset(one.rstrip("*").casefold() for one in several) for several in (problems, solutions, boxes)
    ]
    names = Names(problems=own[0], solutions=own[1], boxes=own[2])
    once = Once()
    for file, beside in _pairs(files(path, (".tex",))):
        given = _parts(file, names, alone=not beside)
        if isinstance(given, Aside):
            yield given
            given = []
        elif not given:
            yield aside(file.name, "no problem", "neither an environment nor a Putnam label")
        for extra in beside:
            more = _parts(extra, names, answers=True)
            yield from [more] if isinstance(more, Aside) else _joined(extra, given, more)
        for row in _rows(file, given, licence, language):
            yield from once.sift(row)


def _pairs(found: list[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Each file of problems with its files of solutions."""
    by_stem = {_stem(one): one for one in found}
    beside = {
        stem: [by_stem[stem + end] for end in SOLUTIONS if stem + end in by_stem and _ends(stem, end)]
        for stem in by_stem
    }
    taken = {one for several in beside.values() for one in several}
    return ((one, beside[_stem(one)]) for one in found if one not in taken)


def _ends(stem: str, end: str) -> bool:
    """`s` stands behind a year only: `numbers.tex` has no solutions of `number.tex`."""
    return end != "s" or stem[-1:].isdigit()


def _stem(file: Path) -> str:
    """The name without `.tex` and `.tex.gz`."""
    return file.name.lower().partition(".tex")[0]


def _parts(
    file: Path, names: Names, *, answers: bool = False, alone: bool = False
) -> list[Part | Loose] | Aside:
    try:
        source = parse(file)
    except Unusable as error:
        return aside(file.name, error.reason, error.detail)
    except DataError as error:
        return aside(file.name, FILE_NOT_READ, str(error))
    stem = " ".join(NAME.findall(_stem(file)))
    called = (stem, source.title, file.absolute().parent.name if alone else "")
    solved = [bool(SOLVED.search(one)) and not PROBLEMS.search(one) for one in called]
    asks = PROBLEMS.search(source.title) and not SOLVED.search(source.title)
    if answers and asks:
        return aside(
            file.name, "problem or solution", f"its name is that of solutions, its title {source.title!r}"
        )
    years = [set(YEAR.findall(one)) for one in (stem, source.title)]
    if answers and all(years) and not years[0] & years[1]:
        return aside(
            file.name, "unclear solution", f"its title {source.title!r} has another year than its name"
        )
    doubtful = next((one for one in (stem, source.title) if doubtful_heading(one)), "")
    doubt = f"the file is called {doubtful!r}" if doubtful else ""
    if re.search(rf"\b{MODELS}\b", plain(source.author)):
        doubt = f"its author is {source.author!r}"
    try:
        return parts(source, names, answers=answers or any(solved), doubt=doubt)
    except Unusable as error:
        return aside(file.name, error.reason, error.detail)


def _joined(file: Path, given: Sequence[Part | Loose], more: Sequence[Part | Loose]) -> Iterator[Aside]:
    """Add the solutions of a file of solutions to the problems of their names; the others aside."""
    problems = [one for one in given if isinstance(one, Part)]
    for one in more:
        if isinstance(one, Loose):
            yield _aside(file, one)
            continue
        mine = [problem for problem in problems if _same(problem, one)]
        alike = [other for other in more if isinstance(other, Part) and other.names & one.names]
        reason = "unclear solution" if mine or len(alike) > 1 else "solution without problem"
        why = (
            f"{len(mine)} problems and {len(alike)} parts of this file have its name {one.label}"
            if one.names
            else "it has no name"
        )
        for solution in one.solutions:
            if len(mine) == len(alike) == 1:
                yield from (_aside(file, lost) for lost in mine[0].take(solution))
            else:
                yield _aside(file, Loose(reason=reason, detail=why, text=solution.text, line=solution.line))


def _aside(file: Path, one: Loose) -> Aside:
    return aside(f"{file.name}:{one.line}", one.reason, one.detail, one.text)


def _same(problem: Part, one: Part) -> bool:
    """Whether they share a name; a label, of another file, is one only where the statement is the same, too."""
    both = problem.names & one.names
    return not all(map(is_ref, both)) or (bool(both) and plain(problem.text) == plain(one.text))


def _rows(file: Path, given: Sequence[Part | Loose], licence: str, language: str) -> Read:
    number = 0
    for part in given:
        if isinstance(part, Loose):
            yield _aside(file, part)
            continue
        number += 1
        label = part.label or str(number)
        row = Fields(where=f"{file.name}:{part.line}", values={"problem": part.text})
        try:
            problem = Problem(
                source="LaTeX",
                native_id=f"{file.stem} {label}",
                text=row.text("problem"),
                language=language,
                licence=licence,
                url=f"{file.name}, {label}",
            )
        except Unusable as error:
            if part.env or not part.solutions:
                yield aside(row.where, error.reason, error.detail)
            for one in part.solutions:
                where = f"{file.name}:{one.line}"
                yield aside(where, "solution without problem", f"{part.label} has no statement", one.text)
            continue
        yield problem
        for solution in part.solutions:
            one = Fields(where=f"{file.name}:{solution.line}", values={"solution": solution.text})
            yield attempt(
                one.where, lambda one=one, problem=problem: reference(problem, one.text("solution"))
            )
