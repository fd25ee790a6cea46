"""The parts that a report is made of, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Block", "Grid", "Heading", "Items", "Paragraph", "Picture"]


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """The figure."""

    caption: str


@dataclass(frozen=True)
class Grid:
    """A table of cells."""

    leading: int
    """Columns that say which line it is; the others are numbers."""
    heads: Sequence[tuple[str, str]]
    """Title and unit of each column."""
    lines: Sequence[Sequence[str]]


Block: TypeAlias = Heading | Paragraph | Items | Picture | Grid
