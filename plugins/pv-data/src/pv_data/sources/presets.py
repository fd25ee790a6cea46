"""Published sets, from `published.yaml`: presets of the source `table`, and files to download."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from pv_data.hookspecs import Read, SourceEntry
from pv_data.sources import table

__all__ = ["File", "Published", "presets", "published"]


@dataclass(frozen=True, kw_only=True)
class File:
    """One file of a set."""

    path: str
    """Where it belongs in `data_dir`."""
    url: str
    sha256: str = ""
    git: str = ""
    """Its id in a git repository: the SHA-1 of `blob SIZE`, a zero byte and the content."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published set."""

    name: str
    """The `kind` that reads it."""
    licence: str
    page: str
    """Where it is described."""
    files: tuple[File, ...]
    meaning: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `table`; empty for a set that has a source of its own."""


@cache
def published() -> dict[str, Published]:
    """The sets by name."""
    given = yaml.safe_load((files("pv_data.sources") / "published.yaml").read_text(encoding="utf-8"))
    return {name: _published(name, **one) for name, one in given.items()}


def presets() -> list[SourceEntry]:
    """A source for each set that `table` reads. An option that a config gives replaces the preset's."""
    return [
        SourceEntry(name=one.name, read=_reader(one.options), meaning=one.meaning)
        for one in published().values()
        if one.options
    ]


def _reader(options: Mapping[str, Any]) -> Any:
    @functools.wraps(table.read)  # the signature by which a config's options are checked
    def read(path: Path, **given: Any) -> Read:
        return table.read(path, **{**options, **given})

    return read


def _published(name: str, *, base: str, files: Mapping[str, Mapping[str, str]], **rest: Any) -> Published:
    made = (
        File(path=path, url=f"{base}/{one['from']}", sha256=one.get("sha256", ""), git=one.get("git", ""))
        for path, one in files.items()
    )
    return Published(name=name, files=tuple(made), **rest)
