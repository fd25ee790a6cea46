"""Source `table`: JSON lines, CSV or Parquet with columns of the user's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof, is_name
from pv_data.sources.reading.assemble import REFERENCE, assemble
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["MEANINGS", "check_columns", "columns_of", "native_id", "read", "renamed"]


MEANINGS = (
    *("problem", "proof", "label", "model", "id", "answer"),
    *("subject", "language", "licence", "url", "split"),
)
RIGHT = frozenset({"true", "1", "1.0", "correct", "right", "yes"})
WRONG = frozenset({"false", "0", "0.0", "incorrect", "wrong", "no"})
UNKNOWN = frozenset({"", "null", "none", "unknown", "nan"})


def read(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    method: str = "proof",
    licence: str = "",
    language: str = "",
    known_by: str = "table",
) -> Read:
    """A problem a row, and its proof where the row has one.

    Args:
        columns: which column of the file is what, for example `{problem: question, proof: response}`; see `MEANINGS`.
            One that is not named here is looked for under its own name.
        method: of the proofs; `ground_truth` for reference proofs, which are right where no label says otherwise.
        licence: of rows that do not say theirs.
        language: of rows that do not say theirs.
        known_by: what the labels rest on, for example `human: 7 of 7`.
    """
    chosen = check_columns(columns or {}, MEANINGS)
    if not is_name(method):
        raise ConfigError(f"method={method!r}; it is a word or two, without /, [ and ]")
    if not known_by or "/" in known_by:
        raise ConfigError(f"known_by={known_by!r}; it is a word or two, without a slash")
    given = {"method": method, "licence": licence, "language": language, "known_by": known_by}
    yield from assemble(
        path,
        (".jsonl", ".csv", ".parquet"),
        lambda row: _rows(renamed(row, chosen, MEANINGS), given, needs_proof="proof" in chosen),
    )


def _rows(row: Fields, given: Mapping[str, str], *, needs_proof: bool) -> Iterator[Problem | Proof | Aside]:
    problem = Problem(
        source="table",
        native_id=native_id(row),
        text=row.text("problem"),
        answer=_answer(row),
        subject=row.optional("subject"),
        language=row.optional("language") or given["language"],
        licence=row.optional("licence") or given["licence"],
        url=row.optional("url"),
        split=_split(row),
    )
    yield problem
    if row.values.get("proof") is None and not needs_proof:
        return
    known = _label(row)
    reference = given["method"] == GROUND_TRUTH and known is None
    yield Proof(
        problem_id=problem.id,
        source=problem.source,
        method=given["method"],
        model=row.optional("model"),
        text=row.text("proof"),
        known=True if reference else known,
        known_by=REFERENCE if reference else "" if known is None else given["known_by"],
    )


def _answer(row: Fields) -> str:
    """A text that may be blank, or a number."""
    value = row.values.get("answer")
    if isinstance(value, float) and not value.is_integer():
        return str(row.number("answer"))
    return row.optional("answer") if value is None or isinstance(value, str) else row.name("answer")


def _split(row: Fields) -> str:
    split = row.optional("split")
    if split not in ("", "train", "test"):
        raise Unusable("split", f"split is {split[:60]!r}; it is train, test or nothing")
    return split


def _label(row: Fields) -> bool | None:
    value = row.values.get("label")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return value == 1
    word = value.strip().lower() if isinstance(value, str) else "?"
    if word in RIGHT | WRONG:
        return word in RIGHT
    if word in UNKNOWN:
        return None
    shown = repr(value[:60]) if isinstance(value, str) else f"a {type(value).__name__}"
    raise Unusable(
        "no label: label", f"label is {shown}; it is true or false, 1 or 0, correct or incorrect, or nothing"
    )


def check_columns(columns: object, meanings: Sequence[str]) -> dict[str, str]:
    """The option `columns`: from meaning to the file's name.

    Raises:
        ConfigError: it is no such mapping.
    """
    if (
        not isinstance(columns, Mapping)
        or not set(columns) <= set(meanings)
        or not all(isinstance(one, str) and one for one in columns.values())
    ):
        raise ConfigError(
            f"columns={columns!r}; it maps a meaning to a column, for example {{{meanings[0]}: NAME}}, "
            f"for {', '.join(meanings)}"
        )
    return dict(columns)


def renamed(
    row: Fields, columns: Mapping[str, str], meanings: Sequence[str], *, needed: Sequence[str] = ("problem",)
) -> Fields:
    """The row by meaning. A column that is not mapped has the name of its meaning; one that is not there is left out.

    Raises:
        Unusable: a column that is mapped, or needed, is not in this row. If it is in none, `assemble` refuses the file.
    """
    if lost := sorted({name for name in columns.values() if name not in row.values}):
        raise Unusable(
            f"missing: {', '.join(lost)}", f"the row has {columns_of(row)}; correct the option `columns`"
        )
    if lost := [one for one in needed if columns.get(one, one) not in row.values]:
        raise Unusable(
            f"missing: {', '.join(lost)}",
            f"the row has {columns_of(row)}; say which of them it is, for example with the option "
            f"columns={{{lost[0]}: NAME}}",
        )
    names = {one: columns.get(one, one) for one in meanings}
    return Fields(
        where=row.where, values={one: row.values[name] for one, name in names.items() if name in row.values}
    )


def columns_of(row: Fields) -> str:
    """The names of its columns, the first of many, for a message."""
    return ", ".join(map(str, list(row.values)[:30]))


def native_id(row: Fields) -> str:
    """The row's own id, or where it stands if it has none or a blank one."""
    value = row.values.get("id")
    blank = value is None or (isinstance(value, str) and not value.strip())
    return row.where if blank else row.name("id")
