"""Catalogue entry: what is known of a set before its file is read, from `published.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from pv_judge.pages.blocks import Column, Table

__all__ = ["Published", "published", "table_of_sets"]


@dataclass(frozen=True, kw_only=True)
class Published:
    """One set."""

    name: str
    what: str
    argument: str
    """RUN, FILE or PATH (a file or a folder of files)."""
    truth: tuple[str, ...]
    """What pairs have, of `label`, `grade` and `first error`."""
    licence: str = ""
    """As found; empty: the user's own, or not published."""
    page: str = ""
    """Where it is published; empty for files of the user's own."""
    paper: str = ""
    """Number on arXiv."""
    expected: Mapping[str, int] = field(default_factory=dict)
    """Counts of the published file, by the keys of `EvalSet.counts`."""
    tried: str = ""
    """On what the reader was tried; empty: on nothing of the publisher's."""
    built: str = "built from its published schema"
    """What a reader that was not tried rests on."""
    options: str = ""
    form: Mapping[str, Any] = field(default_factory=dict)
    """How `tables.read_published` reads it; empty: it has a reader of its own."""

    @property
    def state(self) -> str:
        """On what the reader was tried, or what it rests on; empty for files of the user's own."""
        return self.tried or (self.built if self.page else "")

    def differences(self, counts: Mapping[str, int]) -> str:
        """How a file's counts differ from the published ones, in words; empty where they do not."""
        other = {what: number for what, number in self.expected.items() if counts.get(what) != number}
        there = {what: counts.get(what, 0) for what in other}
        return f"The file has {_words(there)}; published are {_words(other)}." if other else ""


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items())


@cache
def published() -> dict[str, Published]:
    """The sets by name, in the order of the documentation."""
    given = yaml.safe_load((files("pv_eval.sets") / "published.yaml").read_text(encoding="utf-8"))
    return {
        name: Published(name=name, **{**one, "truth": tuple(one["truth"])}) for name, one in given.items()
    }


def table_of_sets() -> Table:
    """All sets, as the command prints them and the documentation has them."""
    columns: list[Column[Published]] = [
        Column("--set", lambda one: f"{one.name}:{one.argument}", left=True),
        Column("pairs", lambda one: one.what, left=True, wrap=True),
        Column("truth", lambda one: ", ".join(one.truth), left=True, wrap=True),
        Column("published", lambda one: _words(one.expected), left=True, wrap=True),
        Column("licence", lambda one: one.licence, left=True),
        Column("source", lambda one: one.page.removeprefix("https://"), left=True, wrap=True),
        Column("arXiv", lambda one: one.paper, left=True),
        Column("reader tried on", lambda one: one.state, left=True, wrap=True),
        Column("options", lambda one: one.options, left=True, wrap=True),
    ]
    return Table.of(columns, published().values())
