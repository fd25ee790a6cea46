"""Source assembly: from the rows of files to each problem once and before its proofs, and each proof once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from pv_data.records import GROUND_TRUTH, OTHER_LABEL, Aside, Problem, Proof
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.files import files
from pv_data.sources.reading.rows import read_rows
from pv_data.sources.reading.unusable import FILE_NOT_READ, Unusable, aside
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["REFERENCE", "Build", "Made", "Once", "assemble", "attempt", "reference"]


Made: TypeAlias = Iterator[Problem | Proof | Aside]
Build: TypeAlias = Callable[[Fields], Made]
"""From one row to its problem and its proofs. `Unusable` sets the rest of the row aside."""


def assemble(
    path: Path,
    suffixes: Sequence[str],
    build: Build,
    *,
    repeats: Sequence[str] = (),
    within: str = "",
    good: Callable[[Problem | Proof], bool] = lambda _: True,
) -> Made:
    """Read the file, or the files of a folder: one of several that cannot be read is set aside, and the next is read.

    Args:
        path: of the file or folder.
        suffixes: of its files.
        build: from a row to what it gives.
        repeats: methods whose proofs stand in several rows by the source's design, and are not set aside for that.
        within: where a .json file has its rows; see `open_rows`.
        good: whether a problem or proof shows that the file is one of this source.

    Raises:
        DataError: no file can be read, or each has rejected rows and nothing good.
    """
    once, failed = Once(repeats), list[DataError]()
    found = files(path, suffixes)
    for file in found:
        try:
            for row in _rows(file, build, within, good):
                yield from once.sift(row)
        except DataError as error:
            failed.append(error)
            if len(found) == 1:
                raise
            if len(failed) == len(found):
                raise DataError(
                    f"{failed[0]}. None of the folder's other {len(found) - 1} files can be read"
                ) from error
            yield aside(file.name, FILE_NOT_READ, str(error))


def _rows(file: Path, build: Build, within: str, good: Callable[[Problem | Proof], bool]) -> Made:
    count, fits, first = 0, False, ""
    for row in read_rows(file, within):
        count += 1
        for made in [row] if isinstance(row, Aside) else _built(row, build):
            if isinstance(made, Aside):
                first = first or f"{made.row}: {'; '.join(filter(None, (made.reason, made.detail)))}"
            else:
                fits = fits or good(made)
            yield made
    # without a rejected row the source passed rows over, which another entry of the config reads
    if not fits and (first or not count):
        why = (
            f"none of its {plural(count, 'row')} is one of this source; the first, {first}"
            if count
            else "it has no rows"
        )
        raise DataError(f"{file} cannot be used: {why}. Give the file of this source")


def attempt(where: str, make: Callable[[], Proof]) -> Proof | Aside:
    """One of several proofs of a row: if it is unusable, only it is set aside."""
    try:
        return make()
    except Unusable as error:
        return aside(where, error.reason, error.detail)


class Once:
    """Lets each problem and each proof pass once. It remembers their ids, splits and labels only."""

    def __init__(self, repeats: Sequence[str] = ()) -> None:
        self._repeats = frozenset(repeats)
        self._problems: dict[str, str] = {}
        self._proofs: dict[str, bool | None] = {}

    def sift(self, row: Problem | Proof | Aside) -> Made:
        """The row, or nothing for a problem that is there, or an `Aside` for a proof that is."""
        if isinstance(row, Problem):
            if row.id not in self._problems:
                self._problems[row.id] = row.split
                yield row
            elif (split := self._problems[row.id]) != row.split:
                detail = f"first {split or 'no split'}, then {row.split or 'no split'}; the first counts"
                yield aside(f"problem {row.native_id}", "twice, other split", detail, row.text)
        elif isinstance(row, Proof):
            if row.id not in self._proofs:
                self._proofs[row.id] = row.known
                yield row
            elif self._proofs[row.id] is row.known:
                if row.method in self._repeats:
                    return
                yield aside(f"proof {row.id}", "twice", "the same proof of the same problem", row.text)
            else:
                yield aside(f"proof {row.id}", OTHER_LABEL, f"first {self._proofs[row.id]}, then {row.known}")
        else:
            yield row


def _built(row: Fields, build: Build) -> Made:
    try:
        yield from build(row)
    except Unusable as error:
        yield aside(row.where, error.reason, error.detail, _shown(row))


def _shown(row: Fields) -> str:
    """The texts of a row, each cut: `repr` of a deep value may not end."""
    return "\n".join(f"{key}: {value[:400]}" for key, value in row.values.items() if isinstance(value, str))


REFERENCE = "reference solution"


def reference(problem: Problem, text: str) -> Proof:
    """A source's own proof, which is taken to be right."""
    return Proof(
        problem_id=problem.id,
        source=problem.source,
        method=GROUND_TRUTH,
        text=text,
        known=True,
        known_by=REFERENCE,
    )
