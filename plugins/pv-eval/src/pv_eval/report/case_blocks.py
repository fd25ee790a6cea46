"""Single cases as blocks: the worst errors with the trace and its passage, and two verifiers' traces side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pv_eval.report.blocks import Block, Excerpts, Heading, Items, Paragraph, Subheading, Text
from pv_eval.report.cases import Case
from pv_eval.report.excerpt import excerpt
from pv_eval.report.passage import find_passage
from pv_eval.report.summary import Entry, Versus
from pv_judge.pages.text import plain

__all__ = ["error_blocks", "split_blocks"]

INPUT = 2500
"""Characters of a question or a proof that are shown whole."""


def error_blocks(entry: Entry) -> Iterator[Block]:
    """Both kinds of error of one verifier."""
    yield Heading(f"Worst errors of {entry.name}")
    wrong, right = entry.accepted_wrong, entry.rejected_right
    kinds = (("Wrong proofs that are accepted", wrong), ("Right proofs that are rejected", right))
    if not any(cases for _, cases in kinds):
        yield Paragraph("No vote is for the wrong class.")
    for title, cases in kinds:
        for case in cases:
            yield from _case_blocks(title, entry, case)


def split_blocks(first: Entry, versus: Versus) -> Iterator[Block]:
    """Traces of the first and of another verifier, side by side."""
    if not versus.splits:
        return
    yield Heading(f"{first.name} beside {versus.second.name}")
    for split in versus.splits:
        yield from _pair_blocks(f"{100 * split.gain:+.0f} points", split.first)
        yield Excerpts([_trace(first, split.first), _trace(versus.second, split.second)])


def _case_blocks(title: str, entry: Entry, case: Case) -> Iterator[Block]:
    yield from _pair_blocks(title, case)
    yield Excerpts([*_inputs(case), _trace(entry, case)])


def _pair_blocks(title: str, case: Case) -> Iterator[Block]:
    pair = case.pair
    yield Subheading(f"{title}: {plain(pair.pair_id, 80)}")
    part = f", slice {plain(pair.slice, 80)}" if pair.slice else ""
    yield Items(
        [f"a {'right' if pair.label else 'wrong'} proof of question {plain(pair.question_id, 80)}{part}"]
    )


def _inputs(case: Case) -> Sequence[Text]:
    texts = (("question", case.pair.question), ("proof", case.pair.proof))
    return [Text(title, excerpt(text, whole=INPUT)) for title, text in texts if text.strip()]


def _trace(entry: Entry, case: Case) -> Text:
    votes = f"{case.accepted} accept, {case.rejected} reject, {case.missing} without a verdict"
    vote = case.vote
    if vote is None or vote.trace is None:
        return Text(f"{entry.name}: {votes}. No trace was kept.", ())
    said = {True: "True", False: "False", None: "no verdict"}[vote.verdict]
    passage = find_passage(vote.trace)
    why = f"; marked: {passage.why}" if passage else ""
    title = f"{entry.name}: {votes}. Sample {vote.sample}, {len(vote.trace):,} characters, says {said}{why}"
    return Text(title, excerpt(vote.trace, passage))
