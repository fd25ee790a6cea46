"""Columns of a row by their meaning: the option `columns` says which is which, by name or by a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pv_data.sources.reading.chat import said
from pv_data.sources.reading.cutting import Template
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.paths import Each, value_at
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["check_columns", "columns_of", "native_id", "paths_of", "renamed"]


def paths_of(columns: Any) -> list[str]:
    """The paths of a meaning: one, or those of several columns of labels."""
    return [columns] if isinstance(columns, str) else list(columns)


def check_columns(columns: object, meanings: Sequence[str]) -> dict[str, Any]:
    """The option `columns`: from meaning to the file's name, or to several for a label.

    Raises:
        ConfigError: it is no such mapping.
    """
    fits = isinstance(columns, Mapping) and set(columns) <= set(meanings)
    for name, one in columns.items() if fits else ():  # pyright: ignore[reportAttributeAccessIssue]
        texts = one if name == "label" and isinstance(one, list | tuple) and one else [one]
        fits = fits and all(isinstance(text, str) and text for text in texts)
    if not fits:
        raise ConfigError(
            f"columns={columns!r}; it maps a meaning to a column, for example {{{meanings[0]}: NAME}}, "
            f"for {', '.join(meanings)}"
        )
    return dict(columns)  # pyright: ignore[reportCallIssue, reportArgumentType]


def renamed(
    row: Fields,
    columns: Mapping[str, Any],
    meanings: Sequence[str],
    *,
    needed: Sequence[str] = ("problem",),
    cut: Mapping[str, Template] | None = None,
) -> Fields:
    """The row by meaning. A column that is not mapped has the name of its meaning; one that is not there is left out.

    Raises:
        Unusable: a column that is mapped, cut or needed is not in this row. If it is in none, `assemble` refuses the
            file.
    """
    values = {one: row.values[one] for one in meanings if one not in columns and one in row.values}
    for name, paths in columns.items():
        found = [value_at(row.values, path) for path in paths_of(paths)]
        values[name] = found[0] if len(found) == 1 else _together(found)
    for path, template in (cut or {}).items():
        whole = value_at(row.values, path)
        if isinstance(whole, Each):
            parts = [_cut(one, template, path) for one in whole]
            for name in filter(None, template.names):
                values[name] = Each(one if isinstance(one, Unusable) else one[name] for one in parts)
        elif isinstance(parts := _cut(whole, template, path), Unusable):
            raise parts
        else:
            values |= parts
    if lost := [one for one in needed if one not in values]:
        raise Unusable(
            f"missing: {', '.join(lost)}",
            f"the row has {columns_of(row)}; name its column with --column {lost[0]}=NAME, or in a config "
            f"with options: {{columns: {{{lost[0]}: NAME}}}}",
        )
    return Fields(where=row.where, values=values)


def _together(found: Sequence[Any]) -> Any:
    """Labels of several columns, proof by proof where they are lists; a null list gives none."""
    lists = [one for one in found if isinstance(one, Each)]
    if not lists:
        return list(found)
    if one := [value for value in found if value is not None and not isinstance(value, Each)]:
        raise Unusable(
            "no label: label", f"one label, {str(one[0])[:60]!r}, for several proofs; give one for each"
        )
    if len({len(one) for one in lists}) > 1:
        raise Unusable("lists of unequal length", "the columns of labels have different numbers of items")
    rows = [
        [one[number] if isinstance(one, Each) else one for one in found] for number in range(len(lists[0]))
    ]
    return Each(next((one for one in row if isinstance(one, Unusable)), row) for row in rows)


def _cut(value: Any, template: Template, path: str) -> dict[str, str] | Unusable:
    try:
        if isinstance(value, Unusable):
            return value
        text = Fields(where=path, values={path: said(value, "user", path, whoever=True)}).text(path)
        return template.cut(text, path)
    except Unusable as error:
        return error


def columns_of(row: Fields) -> str:
    """The names of its columns, the first of many, for a message."""
    return ", ".join(map(str, list(row.values)[:30]))


def native_id(row: Fields) -> str:
    """The row's own id, or where it stands if it has none or a blank one."""
    value = row.values.get("id")
    blank = value is None or (isinstance(value, str) and not value.strip())
    return row.where if blank else row.name("id")
