"""Contamination report: counts by source and test set, and the pairs, as Markdown and as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import plain, plural

__all__ = ["Contamination", "Hit"]

SHOWN = 100
"""Characters of a text in the Markdown."""
LISTED = 50
"""Pairs of each table in the Markdown; the rows have all."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A problem of the run and one of a test set that is near it."""

    source: str
    problem_id: str
    native_id: str
    split: str = ""
    """`train` or `test`; empty for a problem of which the run has exported no proof."""
    test_set: str
    test_problem_id: str
    test_id: str
    """What the test set calls it."""
    similarity: float
    """Weighted Jaccard similarity of what rewording leaves of both texts, 0 to 1."""
    cosine: float | None = None
    """Of the embeddings; None where they were not asked for, or another problem of the run is nearer."""
    decision: str = ""
    """A person's: `same`, `different`, or empty."""
    text: str
    test_text: str
    shared: str = ""
    """Formulas, words and numbers that both have, as the problem of the run spells them."""
    only_here: str = ""
    only_there: str = ""


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """The report."""

    threshold: float
    hits: tuple[Hit, ...]
    """Pairs that count: from the threshold, or `same` by a person's decision. The most similar first."""
    undecided: tuple[Hit, ...]
    """Pairs near the threshold, and those that the embeddings show. The most similar first."""
    rejected: tuple[Hit, ...]
    """Pairs that a person decided are different."""
    problems: Mapping[tuple[str, str], int]
    """Problems of the run by source and split."""
    test_problems: Mapping[str, int]
    """Problems by test set."""

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Problems of the run that are in the set, by source, split and set."""
        pairs = {(hit.source, hit.split, hit.test_set, hit.problem_id) for hit in self.hits}
        return Counter(one[:3] for one in pairs)

    def rows(self) -> list[dict[str, Any]]:
        """All pairs as plain values: those to decide first, then those that count, then the rejected ones."""
        return [asdict(hit) for hit in (*self.undecided, *self.hits, *self.rejected)]

    def to_markdown(self) -> str:
        """Counts by source and set, and the nearest pairs."""
        return to_markdown(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        counts = self.counts()
        by_source: list[Column[tuple[str, str]]] = [
            Column("source", lambda row: plain(row[0]), left=True),
            Column("split", lambda row: row[1] or "not exported", left=True),
            Column("problems", lambda row: str(self.problems[row])),
            *(
                Column(f"{plain(one)} ({number})", lambda row, one=one: str(counts[*row, one]))
                for one, number in sorted(self.test_problems.items())
            ),
        ]
        yield Paragraph(
            "Problems of the run that are in a test set: from a similarity of "
            f"{self.threshold:g}, with variables, numbers and order blind, or by a person's decision."
        )
        yield Table.of(by_source, sorted(self.problems))
        if self.rejected:
            yield Paragraph(
                f"{plural(len(self.rejected), 'pair')} {'does' if len(self.rejected) == 1 else 'do'} not count: "
                "a person decided that they are different."
            )
        if not self.hits:
            yield Paragraph("No pair was found.")
        yield from _listed("", self.hits)
        yield from _listed("Pairs for a person to decide, which do not count:", self.undecided)


def _listed(title: str, hits: tuple[Hit, ...]) -> Iterator[Block]:
    if hits:
        if title:
            yield Paragraph(title)
        yield Table.of(PAIRS, hits[:LISTED])
    if len(hits) > LISTED:
        yield Paragraph(f"And {plural(len(hits) - LISTED, 'more pair')}.")


PAIRS: tuple[Column[Hit], ...] = (
    Column("similarity", lambda hit: f"{hit.similarity:.2f}"),
    Column("cosine", lambda hit: "" if hit.cosine is None else f"{hit.cosine:.2f}"),
    Column("problem", lambda hit: plain(f"{hit.source} {hit.native_id}", SHOWN), left=True),
    Column("split", lambda hit: hit.split, left=True),
    Column("test set", lambda hit: plain(f"{hit.test_set} {hit.test_id}", SHOWN), left=True),
    Column("text", lambda hit: plain(hit.text, SHOWN), left=True),
    Column("text there", lambda hit: plain(hit.test_text, SHOWN), left=True),
    Column("both have", lambda hit: plain(hit.shared, SHOWN), left=True),
)
