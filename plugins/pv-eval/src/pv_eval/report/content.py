"""Content of an evaluation report, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pv_eval import __version__
from pv_eval.evaluation import Evaluation
from pv_eval.intervals import Estimate
from pv_eval.report import tables
from pv_eval.report.cases import Case
from pv_eval.report.charts import length_name, with_lengths
from pv_eval.report.grade_tables import grade_blocks, step_blocks
from pv_eval.report.names import in_title
from pv_eval.report.paper import PAPER, SIZES
from pv_eval.report.passage import excerpt, find_passage
from pv_eval.report.ranking_table import ranking_table
from pv_eval.report.summary import Entry, Group, Summary, Versus
from pv_eval.report.traces import FILE, address
from pv_judge.pages.blocks import Beside, Block, Excerpt, Heading, Items, Link, Paragraph, Picture
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
    "Agreement, kappa, AC1: majority of all votes against the label; a tie or no verdict is a category of its own.",
    "AUROC: how often a right proof has a higher score than a wrong one, a tie counts half; 0.5 by chance. Average "
    "precision: by chance the share of the class. Surest 50 %: accuracy of the majority verdict if the least sure half "
    "is left out.",
    "Brier, ECE: of the share of accepting votes as a probability, over ten bins of equal width. An ECE is too high in "
    "small samples.",
    "best-of-k: the proof with the largest share of accepting votes among k of a question's, exactly over all subsets; "
    "questions count alike. It is not verl's best@N, which is the largest of the metric itself.",
    "p by question: verifiers swapped question by question (sign flips), or the t of the interval where fewer than 8 "
    "questions of a class differ. McNemar: pairs taken as independent, which is too sure.",
)


def content(summary: Summary) -> Iterator[Block]:
    """All of it; the first block is the title. With several sets each is a section of its own."""
    groups, how = summary.groups, summary.how
    several = len(groups) > 1
    yield Heading("Report of " + in_title(entry.name for entry in summary.entries), level=1)
    if not several:
        yield _about(groups[0])
    yield Paragraph(
        f"Numbers have {100 * how.level:g} % cluster-t intervals over questions; without one, - or the number alone. "
        f"By pv-eval {__version__}."
        + (" Verifiers are compared within a set, each with the set's first." if several else "")
    )
    if summary.cases:
        yield Link("All votes with their traces", FILE)
    for group in groups:
        if several:
            yield Heading(group.name)
            yield _about(group)
        for section in SECTIONS:
            yield from _deeper(section(group)) if several else section(group)
    yield Heading("What the numbers are")
    yield Items(DEFINITIONS)


def _deeper(blocks: Iterable[Block]) -> Iterator[Block]:
    """Headings one level down, under the heading of a set."""
    for block in blocks:
        yield replace(block, level=block.level + 1) if isinstance(block, Heading) else block


def _about(group: Group) -> Block:
    """What was sampled, and how; a set's size once where all its runs have it."""
    sizes = [_size(entry.evaluation) for entry in group.entries]
    same = len(set(sizes)) == 1 and len(sizes) > 1
    lines = [f"{group.name}: {sizes[0]}"] * same
    for entry, size in zip(group.entries, sizes, strict=True):
        info = entry.info
        how = [] if same else [size]
        how += [plural(entry.evaluation.votes, "vote")]
        how += [f"temperature {info.temperature:g}"] if info.temperature is not None else []
        how += [f"seed {info.seed}"] if info.seed is not None else []
        lines.append(f"{entry.name}{'' if same else f' on {group.name}'}: {', '.join(how)}")
    return Items(lines)


def _size(found: Evaluation) -> str:
    return (
        f"{plural(found.pairs, 'pair')} of {plural(found.questions, 'question')}, {found.right} right and "
        f"{plural(found.pairs - found.right, 'wrong proof')}"
    )


def _numbers(group: Group) -> Iterator[Block]:
    yield Heading("Numbers")
    yield from tables.number_tables(group.entries)
    yield Items(_cautions(group))


def _cautions(group: Group) -> list[str]:
    """Findings of the check, notes of the run, and notes of numbers; each once, with whose it is."""
    lines: list[str] = []
    whose: dict[str, dict[str, None]] = {}
    if group.apart:
        lines.append(f"It is another set than an earlier one of the same name: {group.apart}.")
    first = {pair.pair_id for pair in group.first.counts.pairs}
    for entry in group.entries:
        found, own = entry.evaluation, {pair.pair_id for pair in entry.counts.pairs}
        if own != first:
            lines.append(
                f"{entry.name}: has {plural(len(own), 'pair')} and {group.first.name} {len(first)}, "
                f"{len(own & first)} of them "
                "the same. Only comparisons are on the same pairs; the other numbers are of each run's own."
            )
        for note in (*map(str, found.problems), *entry.info.notes, *_notes(found.metrics)):
            whose.setdefault(note, {})[entry.name] = None
        if found.sampling_error == found.sampling_error:
            lines.append(
                f"{entry.name}: sampling anew on the same pairs moves Avg@{found.samples[0]} by about "
                f"{100 * found.sampling_error:.1f} points (standard error)."
            )
        if found.without_length:
            lines.append(
                f"{entry.name}: the length of {plural(found.without_length, 'trace')} is unknown; lengths are of the "
                "others."
            )
    return [*lines, *group.grades_apart] + [
        f"{'All' if len(names) == len(group.entries) > 1 else ', '.join(names)}: {note}"
        for note, names in whose.items()
    ]


def _notes(metrics: Mapping[str, Estimate]) -> list[str]:
    by_note: dict[str, list[str]] = {}
    for name, estimate in metrics.items():
        if estimate.note and name in tables.SHOWN:
            by_note.setdefault(estimate.note, []).append(tables.metric_name(name))
    return [f"{'; '.join(names)}: {note}." for note, names in by_note.items()]


def _beside_paper(group: Group) -> Iterator[Block]:
    entries, name = group.entries, group.set_name
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
        f"{entry.name} was measured on {plural(found.pairs, 'pair')} of "
        f"{plural(found.questions, 'question')}, the paper's set has "
        f"{size[0]} of {size[1]}: not the same set."
        for entry in entries
        for found in (entry.evaluation,)
        if size and (found.pairs, found.questions) != size
    ]
    if lines:
        yield Items(lines)


def _slices(group: Group) -> Iterator[Block]:
    table = tables.slices_table(group.entries)
    if table:
        yield Heading("By slice")
        yield table


def _against(group: Group) -> Iterator[Block]:
    if group.versus:
        yield Heading(f"Against {group.first.name}")
    for versus in group.versus:
        yield from _versus_blocks(group.first, versus)


def _versus_blocks(first: Entry, versus: Versus) -> Iterator[Block]:
    found = versus.comparison
    yield Paragraph(
        f"{versus.second.name} minus {first.name}, on {plural(found.pairs, 'pair')} of "
        f"{plural(found.questions, 'question')} that both voted on ({plural(found.left_out, 'other')} left out)."
    )
    yield tables.versus_table(versus)
    yield Paragraph(
        f"By majority, {first.name} alone is right on {plural(found.only_first, 'pair')}, {versus.second.name} "
        f"alone on {found.only_second}: p {p_value(found.mcnemar_p)} by McNemar's exact test. No majority, which is "
        f"not right: {found.ties[0]} and {found.ties[1]}."
    )


def _majority(group: Group) -> Iterator[Block]:
    yield Heading("Majority of k votes")
    yield tables.majority_table(group.entries)


def _best_of(group: Group) -> Iterator[Block]:
    table = tables.best_of_table(group.entries)
    if table is None:
        return
    yield Heading("Best of k")
    yield Picture(
        f"{group.prefix}best_of",
        "How often the chosen proof is right. The band is between ties taken as right and as wrong.",
    )
    yield table
    yield Items([line for entry in group.entries for line in _candidates(entry)])


def _grades(group: Group) -> Iterator[Block]:
    graded = [(entry.name, entry.graded) for entry in group.entries if entry.graded]
    yield from grade_blocks(graded, group.grades_versus)
    yield from step_blocks([(entry.name, entry.steps) for entry in group.entries if entry.steps])


def _ranking(group: Group) -> Iterator[Block]:
    yield Heading("Without a threshold")
    yield ranking_table(group.entries)


def _agreement(group: Group) -> Iterator[Block]:
    yield Heading("Agreement and calibration")
    yield tables.agreement_table(group.entries)
    yield Picture(
        f"{group.prefix}reliability",
        "Share of right proofs by share of accepting votes; larger dots are more pairs.",
    )
    yield tables.bins_table(group.entries)


def _lengths(group: Group) -> Iterator[Block]:
    """A table and a figure for each unit: tokens and characters are not comparable."""
    units = with_lengths(group.entries)
    for unit in units:
        yield Heading("Length of traces" + (f" in {unit}" if len(units) > 1 else ""))
        yield Picture(length_name(group, unit), f"Mean length in {unit}, by verdict and by correctness.")
        yield tables.lengths_table(units[unit], unit)


def _candidates(entry: Entry) -> Iterator[str]:
    found = entry.best_of
    if found is None:
        yield f"{entry.name}: no question has two proofs, so there is nothing to choose."
        return
    low, high = found.candidates
    span = str(low) if low == high else f"{low} to {high}"
    yield (
        f"{entry.name}: {plural(found.problems, 'question')} with {span} proofs each"
        + (f"; {plural(found.left_out, 'question')} with fewer proofs left out." if found.left_out else ".")
    )


def _errors(group: Group) -> Iterator[Block]:
    for entry in group.entries if group.cases else ():
        yield from _error_blocks(group, entry)


def _error_blocks(group: Group, entry: Entry) -> Iterator[Block]:
    """Both kinds of error of one verifier."""
    yield Heading(f"Worst errors of {entry.name}")
    wrong, right = entry.accepted_wrong, entry.rejected_right
    kinds = (("Wrong proofs that are accepted", wrong), ("Right proofs that are rejected", right))
    if not any(cases for _, cases in kinds):
        yield Paragraph("No vote is for the wrong class.")
    for title, cases in kinds:
        for case in cases:
            yield from _pair_blocks(group, title, entry, case)
            yield Beside([[text] for text in (*_inputs(case), _trace(entry, case))])


def _splits(group: Group) -> Iterator[Block]:
    """Traces of the first and of another verifier, side by side."""
    for versus in group.versus:
        if versus.splits:
            yield Heading(f"{group.first.name} beside {versus.second.name}")
        for split in versus.splits:
            yield from _pair_blocks(group, f"{100 * split.gain:+.0f} points", group.first, split.first)
            yield Beside([[_trace(group.first, split.first)], [_trace(versus.second, split.second)]])


def _pair_blocks(group: Group, title: str, entry: Entry, case: Case) -> Iterator[Block]:
    pair = case.pair
    yield Heading(f"{title}: {plain(pair.pair_id, 80)}", level=3)
    part = f", slice {plain(pair.slice, 80)}" if pair.slice else ""
    yield Items(
        [f"a {'right' if pair.label else 'wrong'} proof of question {plain(pair.question_id, 80)}{part}"]
    )
    yield Link("All votes on it", address(group, pair, entry.name, case.vote.sample if case.vote else 0))


def _inputs(case: Case) -> list[Excerpt]:
    texts = (("question", case.pair.question), ("proof", case.pair.proof))
    return [Excerpt(title, excerpt(text, whole=INPUT)) for title, text in texts if text.strip()]


def _trace(entry: Entry, case: Case) -> Excerpt | Paragraph:
    votes = f"{case.accepted} accept, {case.rejected} reject, {case.missing} without a verdict"
    vote = case.vote
    if vote is None or vote.trace is None:
        return Paragraph(f"{entry.name}: {votes}. No trace was kept.")
    said = {True: "True", False: "False", None: "no verdict"}[vote.verdict]
    passage = find_passage(vote.trace)
    why = f"; marked: {passage.why}" if passage else ""
    title = f"{entry.name}: {votes}. Sample {vote.sample}, {len(vote.trace):,} characters, says {said}{why}"
    return Excerpt(title, excerpt(vote.trace, passage))


Section: TypeAlias = Callable[[Group], Iterator[Block]]
SECTIONS: tuple[Section, ...] = (
    _numbers,
    _grades,
    _beside_paper,
    _slices,
    _against,
    _majority,
    _best_of,
    _ranking,
    _agreement,
    _lengths,
    _errors,
    _splits,
)
"""Of each set, in the order of the page; one that has nothing to show yields nothing. Its headings are of level 2."""
