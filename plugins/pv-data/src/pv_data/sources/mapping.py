"""Columns of the user's names, for `table` and `student`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["check_columns", "renamed"]


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


def renamed(row: Fields, columns: Mapping[str, str], meanings: Sequence[str]) -> Fields:
    """The row by meaning. A column that is not mapped has the name of its meaning.

    Raises:
        Unusable: a mapped column is not in this row. If it is in none, `assemble` refuses the file.
    """
    lost = sorted({name for name in columns.values() if name not in row.values})
    if lost:
        raise Unusable(
            f"missing: {', '.join(lost)}",
            f"the row has {', '.join(map(str, list(row.values)[:30]))}; mend the option `columns`",
        )
    needed = meanings[0]
    if columns.get(needed, needed) not in row.values:
        raise Unusable(
            f"missing: {needed}",
            f"the row has {', '.join(map(str, list(row.values)[:30]))}; say which of them it is, for example with the "
            f"option columns={{{needed}: NAME}}",
        )
    return Fields(where=row.where, values={one: row.values.get(columns.get(one, one)) for one in meanings})
