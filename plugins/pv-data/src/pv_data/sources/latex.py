r"""LaTeX files of problems and solutions, in three forms that competitions use, read by pylatexenc.

- `\begin{problem} ... \end{problem}` and a `solution` or `proof` environment behind it;
- `\item[A1]` to `\item[B6]`, the Putnam files: problems in `2010.tex`, solutions under the same labels in `2010s.tex`,
  both in one folder; or both lists in one file;
- a section a problem: its statement in a box (`mdframed`), its solution the rest of the section.

Macros are not expanded and `\input` is not followed. A file that is broken (a brace, an environment or a formula that
does not end) is set aside whole: behind the break a solution may be taken for another problem's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem
from pv_data.sources.reading.assemble import Once, attempt
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.files import files
from pv_data.sources.reading.reference import reference
from pv_data.sources.reading.tex import Names, Part, parse, parts
from pv_data.sources.reading.unusable import Unusable, aside
from pv_rl.errors import ConfigError, DataError

__all__ = ["read"]

SOLUTIONS = ("-solutions", "_solutions", "-sol", "_sol", "s")
"""What a file of solutions has behind the name of its problems' file."""


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
        if isinstance(value, str) or not all(isinstance(one, str) and one for one in value):
            raise ConfigError(f"{name}={value!r}; it is a list of names of environments")
    names = Names(problems=frozenset(problems), solutions=frozenset(solutions), boxes=frozenset(boxes))
    once = Once()
    for file, beside in _pairs(files(path, (".tex",))):
        solved: dict[str, tuple[str, ...]] = {}
        for extra in beside:
            more = _parts(extra, names)
            if isinstance(more, Aside):
                yield more
            else:
                solved |= {one.label: (one.text, *one.solutions) for one in more}
        given = _parts(file, names)
        if isinstance(given, Aside):
            yield given
            continue
        if not given:
            yield aside(file.name, "no problem", "neither an environment nor a Putnam label")
        for row in _rows(file, given, solved, licence, language):
            yield from once.sift(row)
        for label in sorted(solved.keys() - {one.label for one in given}):
            yield aside(f"{file.name}:{label}", "solution without problem", "", solved[label][0])


def _pairs(found: list[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Each file of problems with its files of solutions."""
    by_stem = {_stem(one): one for one in found}
    beside = {stem: [by_stem[stem + end] for end in SOLUTIONS if stem + end in by_stem] for stem in by_stem}
    taken = {one for several in beside.values() for one in several}
    return ((one, beside[_stem(one)]) for one in found if one not in taken)


def _stem(file: Path) -> str:
    """The name without `.tex` and `.tex.gz`."""
    return file.name.lower().partition(".tex")[0]


def _parts(file: Path, names: Names) -> list[Part] | Aside:
    try:
        return parts(parse(file), names)
    except Unusable as error:
        return aside(file.name, error.reason, error.detail)
    except DataError as error:
        return aside(file.name, "not readable", str(error))


def _rows(
    file: Path, given: Sequence[Part], solved: dict[str, tuple[str, ...]], licence: str, language: str
) -> Read:
    for number, part in enumerate(given, start=1):
        label = part.label or str(number)
        row = Fields(where=f"{file.name}:{label}", values={"problem": part.text})
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
            yield aside(row.where, error.reason, error.detail)
            continue
        yield problem
        for text in (*part.solutions, *(solved.get(part.label, ()) if part.label else ())):
            one = Fields(where=f"{row.where}:solution", values={"solution": text})
            yield attempt(
                one.where, lambda one=one, problem=problem: reference(problem, one.text("solution"))
            )
