"""Content blocks: what a page is made of, whatever it is rendered as.

Blocks hold plain text. The renderers (`terminal`, `markdown`, `html`) escape all of it, so a block may hold text of a
model, of a data set or of a config as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

__all__ = [
    "Beside",
    "Block",
    "Cell",
    "Column",
    "Curve",
    "Excerpt",
    "Heading",
    "Items",
    "Link",
    "Paragraph",
    "Picture",
    "Piece",
    "Table",
    "Tone",
]

T = TypeVar("T")

Tone: TypeAlias = Literal["", "strong", "dim", "good", "warn", "bad"]
"""How a line looks."""
Piece: TypeAlias = "tuple[str, Literal['text', 'mark', 'gap']]"
"""Part of a longer text: shown as it is, marked, or a note of what was left out."""


@dataclass(frozen=True)
class Heading:
    kind: ClassVar = "heading"
    text: str
    level: int = 2
    """1 for the page's title, 2 for a section, 3 for a part of it."""


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar = "paragraph"
    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Link:
    """A link to a file beside the page."""

    kind: ClassVar = "link"
    text: str
    href: str
    """A relative address whose parts are percent-encoded."""


@dataclass(frozen=True)
class Items:
    """A bullet list."""

    kind: ClassVar = "items"
    lines: Sequence[str]


@dataclass(frozen=True)
class Curve:
    """A table cell that is a line over steps: a sparkline on a terminal, an SVG in HTML."""

    steps: Sequence[float]
    """(S,), growing."""
    values: Sequence[float]
    """(S,), NaN where there is no number."""
    label: str
    """What it shows, in words."""
    last: float
    """The step at the right edge."""
    scale: tuple[str, str] = ("", "")
    """The least and the greatest value, as text; shown beside the line in HTML."""
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Steps that are marked in HTML, by kind: alarm, resume or validation."""


Cell: TypeAlias = str | Curve


@dataclass(frozen=True)
class Column(Generic[T]):
    """A table column: its title, and the cell that it shows of a row."""

    title: str
    show: Callable[[T], Cell]
    unit: str = ""
    left: bool = False
    """Whether cells are text, aligned to the left; numbers are aligned to the right."""
    wrap: bool = False
    """Whether a terminal may break a cell into several lines."""
    width: int | None = None
    """Characters on a terminal; None for as many as the cells need."""
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    kind: ClassVar = "table"
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]
    """A cell a column."""
    repeated: int = 1
    """Columns that name the row: a terminal repeats them where a wide table continues below."""
    tones: Mapping[int, Tone] = field(default_factory=dict)
    """Of rows, by number."""

    @classmethod
    def of(
        cls,
        columns: Sequence[Column[T]],
        things: Iterable[T],
        *,
        repeated: int = 1,
        tones: Mapping[int, Tone] | None = None,
    ) -> Table:
        """A row for each thing."""
        rows = [[column.show(thing) for column in columns] for thing in things]
        return cls(columns, rows, repeated, tones or {})

    def part(self, places: Sequence[int]) -> Table:
        """Some of its columns, by number."""
        return replace(
            self,
            columns=[self.columns[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
        )


@dataclass(frozen=True)
class Picture:
    """A figure, `NAME.png` beside the page."""

    kind: ClassVar = "picture"
    name: str
    caption: str


@dataclass(frozen=True)
class Excerpt:
    """A text from outside, line breaks kept."""

    kind: ClassVar = "excerpt"
    title: str
    pieces: Sequence[Piece]
    tone: Tone = "dim"
    """Of the title."""


@dataclass(frozen=True)
class Beside:
    """Parts side by side where there is room, else one below the other."""

    kind: ClassVar = "beside"
    parts: Sequence[Sequence[Block]]


Block: TypeAlias = "Heading | Paragraph | Link | Items | Table | Picture | Excerpt | Beside"
