"""Columns of the user's names, for `table` and `student`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["check_columns", "columns_of", "native_id", "renamed"]


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
            f"columns={columns!r}; it says which column is what, for example {{{meanings[0]}: NAME}}, "
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
            f"missing: {', '.join(lost)}", f"the row has {columns_of(row)}; mend the option `columns`"
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
