"""Content of an evaluation report, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pv_data import __version__
from pv_eval.intervals import Estimate
from pv_eval.report import tables
from pv_eval.report.cases import Case
from pv_eval.report.grade_tables import grade_blocks, step_blocks
from pv_eval.report.paper import PAPER, SIZES
from pv_eval.report.passage import excerpt, find_passage
from pv_eval.report.summary import Entry, Summary, Versus
from pv_judge.pages.blocks import Beside, Block, Excerpt, Heading, Items, Paragraph, Picture
from pv_judge.pages.text import p_value, plain, plural

__all__ = ["content"]

INPUT = 2500
"""Characters of a question or a proof that are shown whole."""
DEFINITIONS = (
    "Avg@n: mean share of the n votes on a pair that are its label. A vote without a verdict is wrong. The same number "
    "is the mean of Avg@k over all k of n votes.",
    "Right and wrong proofs: Avg@n of each class; balanced is their mean, 50 % for who accepts everything.",
    "Precision, F1: of right proofs, accepting one is the positive; of wrong proofs, rejecting one. A missing verdict "
    "is in no precision and lowers the recall.",
    "maj@k: the majority of k of the n votes, exactly over all subsets; missing verdicts do not vote.",
    "Agreement, kappa, AC1: majority of all votes against the label; a tie or no verdict is a category of its own. "
    "Percentile bootstrap over questions.",
    "Brier, ECE: of the share of accepting votes as a probability, over ten bins of equal width. An ECE is too high in "
    "small samples.",
    "best-of-k: the proof with the largest share of accepting votes among k of a question's, exactly over all subsets; "
    "questions count alike. It is not verl's best@N, which is the largest of the metric itself.",
    "p, sign flips: verifiers swapped question by question. McNemar: pairs taken as independent, which is too sure.",
)


def content(summary: Summary, charts: Mapping[str, bytes]) -> Iterator[Block]:
    """All of it; the first block is the title."""
    entries, how = summary.entries, summary.how
    yield Heading("Report of " + ", ".join(entry.name for entry in entries), level=1)
    yield Items([_about(entry) for entry in entries])
    yield Paragraph(
        f"Numbers have {100 * how.level:g} % intervals of a BCa bootstrap over questions, {how.resamples} "
        f"resamples, seed {how.seed}; without one, - or the number alone. By pv-data {__version__}."
    )
    yield Heading("Numbers")
    yield tables.main_table(entries)
    yield Items(_cautions(entries))
    yield from grade_blocks([(entry.name, entry.graded) for entry in entries if entry.graded])
    yield from step_blocks([(entry.name, entry.steps) for entry in entries if entry.steps])
    for name in tables.sets(summary):
        yield from _beside_paper(entries, name)
    slices = tables.slices_table(entries)
    if slices:
        yield Heading("By slice")
        yield slices
    if summary.versus:
        yield Heading(f"Against {entries[0].name}")
        for versus in summary.versus:
            yield from _versus_blocks(entries[0], versus)
    yield from _more(entries, charts)
    for entry in entries if summary.cases else ():
        yield from _error_blocks(entry)
    for versus in summary.versus:
        yield from _split_blocks(entries[0], versus)
    yield Heading("What the numbers are")
    yield Items(DEFINITIONS)


def _about(entry: Entry) -> str:
    info, found = entry.info, entry.evaluation
    how = [f"temperature {info.temperature:g}"] if info.temperature is not None else []
    how += [f"seed {info.seed}"] if info.seed is not None else []
    return (
        f"{entry.name} on {info.set_name or 'a set without a name'}: {plural(found.pairs, 'pair')} of "
        f"{plural(found.questions, 'question')}, {found.right} right and {found.pairs - found.right} wrong proofs, "
        f"{plural(found.votes, 'vote')}" + "".join(f", {one}" for one in how)
    )


def _cautions(entries: Sequence[Entry]) -> list[str]:
    """Findings of the check, notes of the run, and notes of numbers; each with whose it is."""
    lines = []
    for entry in entries:
        found = entry.evaluation
        lines += [f"{entry.name}: {problem}" for problem in found.problems]
        lines += [f"{entry.name}: {note}" for note in entry.info.notes]
        lines += [f"{entry.name}: {note}" for note in _notes(found.metrics)]
        if found.sampling_error == found.sampling_error:
            lines.append(
                f"{entry.name}: sampling anew on the same pairs moves Avg@{found.samples[0]} by about "
                f"{100 * found.sampling_error:.1f} points (standard error)."
            )
        if found.without_length:
            lines.append(f"{entry.name}: {plural(found.without_length, 'vote')} without a length.")
    return lines


def _notes(metrics: Mapping[str, Estimate]) -> list[str]:
    by_note: dict[str, list[str]] = {}
    for name, estimate in metrics.items():
        if estimate.note and name != "accuracy_of_always_true":
            by_note.setdefault(estimate.note, []).append(name)
    return [f"{', '.join(names)}: {note}." for note, names in by_note.items()]


def _beside_paper(entries: Sequence[Entry], name: str) -> Iterator[Block]:
    table = tables.paper_table(entries, name)
    if table is None:
        return
    yield Heading(f"Beside the paper's: {name}")
    what = "Avg@8 of wrong proofs of each kind" if name == "error_types" else "Avg@8"
    yield Paragraph(
        f'The paper\'s numbers are {what} as printed in "{PAPER}", without intervals. Its prompts and traces are not '
        "those measured here."
    )
    yield table
    size = SIZES.get(name)
    lines = [
        f"{entry.name} was measured on {found.pairs} pairs of {found.questions} questions, the paper's set has "
        f"{size[0]} of {size[1]}: not the same set."
        for entry in entries
        for found in (entry.evaluation,)
        if size and entry.info.set_name == name and (found.pairs, found.questions) != size
    ]
    if lines:
        yield Items(lines)


def _versus_blocks(first: Entry, versus: Versus) -> Iterator[Block]:
    found = versus.comparison
    if found is None:
        yield Paragraph(f"{versus.second.name}: not compared. {versus.reason}")
        return
    yield Paragraph(
        f"{versus.second.name} minus {first.name}, on {plural(found.pairs, 'pair')} of "
        f"{plural(found.questions, 'question')} that both voted on ({found.left_out} others left out)."
    )
    yield tables.versus_table(versus)
    yield Paragraph(
        f"By majority, {first.name} alone is right on {plural(found.only_first, 'pair')}, {versus.second.name} "
        f"alone on {found.only_second}: p {p_value(found.mcnemar_p)} by McNemar's exact test. No majority, which is "
        f"not right: {found.ties[0]} and {found.ties[1]}."
    )


def _more(entries: Sequence[Entry], charts: Mapping[str, bytes]) -> Iterator[Block]:
    yield Heading("Majority of k votes")
    yield tables.majority_table(entries)
    best = tables.best_of_table(entries)
    if best is not None:
        yield Heading("Best of k")
        yield Picture(
            "best_of",
            "How often the chosen proof is right. The band is between ties taken as right and as wrong.",
        )
        yield best
        yield Items([line for entry in entries for line in _candidates(entry)])
    yield Heading("Agreement and calibration")
    yield tables.agreement_table(entries)
    yield Picture(
        "reliability", "Share of right proofs by share of accepting votes; larger dots are more pairs."
    )
    yield tables.bins_table(entries)
    yield Heading("Length of traces")
    if "length" in charts:
        yield Picture("length", "Mean length by verdict and by correctness.")
    yield tables.lengths_table(entries)


def _candidates(entry: Entry) -> Iterator[str]:
    found = entry.best_of
    if found is None:
        yield f"{entry.name}: no question has two proofs, so there is nothing to choose."
        return
    low, high = found.candidates
    span = str(low) if low == high else f"{low} to {high}"
    yield (
        f"{entry.name}: {plural(found.problems, 'question')} with {span} proofs each; "
        f"{plural(found.left_out, 'question')} with fewer left out."
    )


def _error_blocks(entry: Entry) -> Iterator[Block]:
    """Both kinds of error of one verifier."""
    yield Heading(f"Worst errors of {entry.name}")
    wrong, right = entry.accepted_wrong, entry.rejected_right
    kinds = (("Wrong proofs that are accepted", wrong), ("Right proofs that are rejected", right))
    if not any(cases for _, cases in kinds):
        yield Paragraph("No vote is for the wrong class.")
    for title, cases in kinds:
        for case in cases:
            yield from _case_blocks(title, entry, case)


def _split_blocks(first: Entry, versus: Versus) -> Iterator[Block]:
    """Traces of the first and of another verifier, side by side."""
    if not versus.splits:
        return
    yield Heading(f"{first.name} beside {versus.second.name}")
    for split in versus.splits:
        yield from _pair_blocks(f"{100 * split.gain:+.0f} points", split.first)
        yield Beside([[_trace(first, split.first)], [_trace(versus.second, split.second)]])


def _case_blocks(title: str, entry: Entry, case: Case) -> Iterator[Block]:
    yield from _pair_blocks(title, case)
    yield Beside([[text] for text in (*_inputs(case), _trace(entry, case))])


def _pair_blocks(title: str, case: Case) -> Iterator[Block]:
    pair = case.pair
    yield Heading(f"{title}: {plain(pair.pair_id, 80)}", level=3)
    part = f", slice {plain(pair.slice, 80)}" if pair.slice else ""
    yield Items(
        [f"a {'right' if pair.label else 'wrong'} proof of question {plain(pair.question_id, 80)}{part}"]
    )


def _inputs(case: Case) -> list[Excerpt]:
    texts = (("question", case.pair.question), ("proof", case.pair.proof))
    return [Excerpt(title, excerpt(text, whole=INPUT)) for title, text in texts if text.strip()]


def _trace(entry: Entry, case: Case) -> Excerpt:
    votes = f"{case.accepted} accept, {case.rejected} reject, {case.missing} without a verdict"
    vote = case.vote
    if vote is None or vote.trace is None:
        return Excerpt(f"{entry.name}: {votes}. No trace was kept.", ())
    said = {True: "True", False: "False", None: "no verdict"}[vote.verdict]
    passage = find_passage(vote.trace)
    why = f"; marked: {passage.why}" if passage else ""
    title = f"{entry.name}: {votes}. Sample {vote.sample}, {len(vote.trace):,} characters, says {said}{why}"
    return Excerpt(title, excerpt(vote.trace, passage))
