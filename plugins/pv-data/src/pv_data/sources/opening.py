"""The door through which every source is read: its options are checked, and the names that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pv_data.hookspecs import Read
from pv_data.plugins import SOURCES, named
from pv_data.records import Problem, Proof, is_name
from pv_data.sources.options import check_options
from pv_rl.errors import PluginError

__all__ = ["open_source"]


def open_source(kind: str, path: Path, options: Mapping[str, Any] | None = None) -> Read:
    """What a source gives.

    Raises:
        ConfigError: there is no such source, or an option that it does not take; before anything is read.
        DataError: while it is read: the file is none of this source.
        PluginError: likewise: it gives a name that no slice can have.
    """
    read = named(SOURCES, kind).read
    typed = check_options(kind, read, options or {})
    return _checked(kind, read(path, **typed))


def _checked(kind: str, rows: Read) -> Read:
    fine = set[str]()
    for row in rows:
        given = {}
        if isinstance(row, Problem | Proof):
            given["source"] = row.source
        if isinstance(row, Proof):
            given["method"] = row.method
        for what, name in given.items():
            if name in fine:
                continue
            if not is_name(name):
                raise PluginError(
                    f"the source {kind} gives {name!r} as the name of a {what}; it is a part of a slice, "
                    "source/method/model, and has one character or more, but no /, [ or ]: rename it in the source"
                )
            fine.add(name)
        yield row
