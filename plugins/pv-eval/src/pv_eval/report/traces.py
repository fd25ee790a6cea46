"""Trace viewer, `traces.html`: every vote of a report with its trace, in one file that loads nothing.

The page holds a JSON text a pair, which its script reads when the pair is opened, so that a large page opens quickly.
Formulas are MathML made by `pv_data.audit.mathml`; the script inserts no other markup.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, TypeAlias
from urllib.parse import quote

from markupsafe import Markup

from pv_data.audit.mathml import formulas, to_html
from pv_eval.report.names import in_title
from pv_eval.report.summary import Entry, Group, Summary
from pv_eval.votes import Pair, Vote
from pv_judge.pages.excerpt import cut
from pv_judge.pages.html import open_templates
from pv_judge.pages.text import plural, visible

__all__ = ["FILE", "address", "draw_traces"]

FILE = "traces.html"
MOST, MOST_PAIRS = 60_000_000, 20_000
"""Characters of all texts of a page, and its pairs. Texts are cut to fit, all traces to the same length."""
LONGEST, LEAST = 20_000, 1_000
"""Characters of a text: at most, and of a trace that is cut to fit at least."""
MOST_FORMULAS = 20_000
"""Different formulas of a page that are MathML, half a millisecond each; questions and proofs come first."""

Text: TypeAlias = "list[str | int | list[str]]"
"""Pieces: plain text, the number of a formula, or in a list a note of what was left out."""


def address(group: Group, pair: Pair, verifier: str, sample: int) -> str:
    """Link to a vote: `traces.html#pair/verifier/sample`, with the set in front where the report has several."""
    parts = [*([group.name] if group.prefix else []), pair.pair_id, verifier, str(sample)]
    return f"{FILE}#" + "/".join(quote(visible(part), safe="") for part in parts)


def draw_traces(summary: Summary) -> bytes:
    """The page."""
    table = _Formulas()
    everything = [(group, *row) for group in summary.groups for row in _votes_by_pair(group)]
    rows = everything[:MOST_PAIRS]
    longest_input = min(LONGEST, MOST // (4 * len(rows)))  # half of the page, a question and a proof each
    inputs = [
        {"q": table.pieces(pair.question, longest_input), "p": table.pieces(pair.proof, longest_input)}
        for _, pair, _ in rows
    ]
    room = MOST - sum(
        min(len(text), longest_input) for _, pair, _ in rows for text in (pair.question, pair.proof)
    )
    lengths = [
        len(vote.trace) for *_, votes in rows for those in votes for vote in those if vote.trace is not None
    ]
    longest = max(LEAST, min(LONGEST, room // max(1, len(lengths))))
    allowed = sum(used <= room for used in itertools.accumulate(min(one, longest) for one in lengths))
    pairs: dict[str, list[Any]] = {group.name: [] for group in summary.groups}
    documents, traces = [], itertools.count()
    for (group, pair, by_verifier), given in zip(rows, inputs, strict=True):
        states = ["".join(_state(pair, vote) for vote in those) for those in by_verifier]
        names = map(visible, (pair.pair_id, pair.question_id, pair.slice))
        pairs[group.name].append([*names, pair.label, states])
        votes = [
            [
                [
                    *_says(entry, pair, vote),
                    table.pieces(vote.trace, longest)
                    if vote.trace is not None and next(traces) < allowed
                    else None,
                ]
                for vote in those
            ]
            for entry, those in zip(group.entries, by_verifier, strict=True)
        ]
        documents.append(_json({**given, "v": votes}))
    sets = [
        {
            "name": visible(group.name),
            "verifiers": [visible(entry.name) for entry in group.entries],
            "pairs": pairs[group.name],
        }
        for group in summary.groups
    ]
    script = files("pv_eval.report").joinpath("traces.js").read_text(encoding="utf-8")
    return (
        open_templates("pv_eval", "report")
        .get_template("traces.html.j2")
        .render(
            title="Traces of " + in_title(entry.name for entry in summary.entries),
            notes=_notes(len(everything) - len(rows), lengths, longest, allowed, table.full),
            index=_json({"sets": sets, "several": len(sets) > 1}),
            documents=documents,
            formulas=_json(table.made),
            script=Markup(script),  # noqa: S704 - ours
            script_hash="sha256-"
            + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        )
        .encode("utf-8")
    )


def _notes(pairs: int, lengths: Sequence[int], longest: int, allowed: int, full: bool) -> list[str]:
    """What the page does not hold; `pairs` are left out."""
    cut_short = sum(length > longest for length in lengths)
    return [
        note
        for note, holds in (
            (f"Not in this page: {plural(pairs, 'pair', ',')} beyond the first {MOST_PAIRS:,}.", pairs),
            (
                f"{cut_short:,} of {len(lengths):,} traces are cut to {longest:,} characters, so that the page opens "
                "quickly: the beginning and the end.",
                cut_short,
            ),
            (f"Traces beyond the first {allowed:,} are not in this page.", len(lengths) > allowed),
            (f"Formulas beyond the first {MOST_FORMULAS:,} different ones are shown as LaTeX.", full),
        )
        if holds
    ]


class _Formulas:
    """Formulas of a page, each converted once."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        """LaTeX and MathML, by number."""
        self.full = False
        self._numbers: dict[str, int | None] = {}

    def pieces(self, text: str, longest: int) -> Text:
        """A text as pieces; the middle of one that is too long is left out."""
        kept = (
            [(0, longest // 2), (len(text) - longest // 2, len(text))]
            if len(text) > longest
            else [(0, len(text))]
        )
        return [one for piece, kind in cut(text, kept) for one in self._split(visible(piece), kind)]

    def _split(self, text: str, kind: str) -> Iterator[str | int | list[str]]:
        if kind == "gap":
            yield [text]
            return
        at = 0
        for start, end, _, _ in formulas(text):
            number = self._number(text[start:end])
            if number is not None:
                if at < start:
                    yield text[at:start]
                yield number
                at = end
        if at < len(text):
            yield text[at:]

    def _number(self, source: str) -> int | None:
        if source not in self._numbers:
            if len(self._numbers) >= MOST_FORMULAS:
                self.full = True
                return None
            markup = to_html(source)
            known = markup.startswith("<math")
            self._numbers[source] = len(self.made) if known else None
            if known:
                self.made.append((source, markup))
        return self._numbers[source]


def _votes_by_pair(group: Group) -> Iterator[tuple[Pair, list[list[Vote]]]]:
    """Pairs that a verifier voted on, with the votes of each verifier, in the order of samples."""
    pairs: dict[str, Pair] = {}
    votes: defaultdict[tuple[int, str], list[Vote]] = defaultdict(list)
    for number, entry in enumerate(group.entries):
        for pair in entry.counts.pairs:
            pairs.setdefault(pair.pair_id, pair)
        for vote in entry.counts.votes:
            votes[number, vote.pair_id].append(vote)
    for name, pair in pairs.items():
        those = [votes.get((number, name), []) for number in range(len(group.entries))]
        yield pair, [sorted(one, key=lambda vote: vote.sample) for one in those]


def _state(pair: Pair, vote: Vote) -> str:
    """Right, wrong or no verdict, as a letter."""
    return "n" if vote.verdict is None else "r" if vote.verdict is pair.label else "w"


def _says(entry: Entry, pair: Pair, vote: Vote) -> tuple[int, str, str]:
    """Sample, state, and what the vote says."""
    says = ["no verdict" if vote.verdict is None else str(vote.verdict)]
    says += [f"grade {vote.grade:.3g}"] if vote.grade is not None else []
    says += [f"first wrong step {vote.first_error}"] if vote.first_error is not None else []
    says += [f"{vote.length:,.0f} {entry.info.length_unit}"] if vote.length is not None else []
    return vote.sample, _state(pair, vote), ", ".join(says)


def _json(value: Any) -> Markup:
    """JSON for a script element; `<` is escaped, so that nothing in it ends the element."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))  # noqa: S704
