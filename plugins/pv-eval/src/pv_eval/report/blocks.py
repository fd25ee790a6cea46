"""What a report is made of, beside the blocks of `pv_judge.pages.blocks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pv_eval.report.excerpt import Piece
from pv_judge.pages.blocks import Grid, Heading, Items, Paragraph

__all__ = ["Block", "Chart", "Excerpts", "Grid", "Heading", "Items", "Paragraph", "Subheading", "Text"]


@dataclass(frozen=True)
class Subheading:
    text: str


@dataclass(frozen=True)
class Chart:
    """A figure, by its name among those that were drawn."""

    name: str
    caption: str


@dataclass(frozen=True)
class Text:
    """A text from outside, under a line that says what it is."""

    title: str
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class Excerpts:
    """Texts beside one another."""

    columns: Sequence[Text]


Block: TypeAlias = Heading | Subheading | Paragraph | Items | Chart | Grid | Text | Excerpts
