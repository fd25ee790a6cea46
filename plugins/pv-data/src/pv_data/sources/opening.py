"""The door through which every source is read: its options are checked, and the names that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pv_data.hookspecs import Read
from pv_data.plugins import SOURCES, named
from pv_data.sources.options import check_options

__all__ = ["open_source"]


def open_source(kind: str, path: Path, options: Mapping[str, Any] | None = None) -> Read:
    """What a source gives.

    Raises:
        ConfigError: there is no such source, or an option that it does not take; before anything is read.
        DataError: while it is read: the file is none of this source.
    """
    read = named(SOURCES, kind).read
    check_options(kind, read, options or {})
    return read(path, **(options or {}))
