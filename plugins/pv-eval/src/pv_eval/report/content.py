"""What a report says, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pv_data import __version__
from pv_eval.intervals import Estimate
from pv_eval.report import tables
from pv_eval.report.blocks import Block, Chart, Heading, Items, Paragraph
from pv_eval.report.case_blocks import error_blocks, split_blocks
from pv_eval.report.charts import Drawn
from pv_eval.report.definitions import DEFINITIONS
from pv_eval.report.numbers import p_value
from pv_eval.report.paper import PAPER, SIZES
from pv_eval.report.summary import Entry, Summary, Versus
from pv_judge.pages.text import plural

__all__ = ["content"]


def content(summary: Summary, charts: Mapping[str, Drawn]) -> Iterator[Block]:
    """All of it; the first block is the title."""
    entries, how = summary.entries, summary.how
    yield Heading("Report of " + ", ".join(entry.name for entry in entries))
    yield Items([_about(entry) for entry in entries])
    yield Paragraph(
        f"Behind numbers stand {100 * how.level:g} % intervals of a BCa bootstrap over questions, {how.resamples} "
        f"resamples, seed {how.seed}; where there is none, - or the bare number. By pv-data {__version__}."
    )
    yield Heading("Numbers")
    yield tables.main_grid(entries)
    yield Items(_cautions(entries))
    for name in tables.sets(summary):
        yield from _beside_paper(entries, name)
    slices = tables.slices_grid(entries)
    if slices:
        yield Heading("By slice")
        yield slices
    if summary.versus:
        yield Heading(f"Against {entries[0].name}")
        for versus in summary.versus:
            yield from _versus_blocks(entries[0], versus)
    yield from _more(entries, charts)
    for entry in entries if summary.cases else ():
        yield from error_blocks(entry)
    for versus in summary.versus:
        yield from split_blocks(entries[0], versus)
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
    grid = tables.paper_grid(entries, name)
    if grid is None:
        return
    yield Heading(f"Beside the paper's: {name}")
    what = "Avg@8 of wrong proofs of each kind" if name == "error_types" else "Avg@8"
    yield Paragraph(
        f'The paper\'s numbers are {what} as printed in "{PAPER}", without intervals. Its prompts and traces are not '
        "those measured here."
    )
    yield grid
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
    yield tables.versus_grid(versus)
    yield Paragraph(
        f"By majority, {first.name} alone is right on {plural(found.only_first, 'pair')}, {versus.second.name} "
        f"alone on {found.only_second}: p {p_value(found.mcnemar_p)} by McNemar's exact test. No majority, which is "
        f"not right: {found.ties[0]} and {found.ties[1]}."
    )


def _more(entries: Sequence[Entry], charts: Mapping[str, Drawn]) -> Iterator[Block]:
    yield Heading("Majority of k votes")
    yield tables.majority_grid(entries)
    best = tables.best_of_grid(entries)
    if best is not None:
        yield Heading("Best of k")
        yield Chart(
            "best_of",
            "How often the chosen proof is right. The band is between ties taken as right and as wrong.",
        )
        yield best
        yield Items([line for entry in entries for line in _candidates(entry)])
    yield Heading("Agreement and calibration")
    yield tables.agreement_grid(entries)
    yield Chart(
        "reliability", "Share of right proofs by share of accepting votes; larger dots are more pairs."
    )
    yield tables.bins_grid(entries)
    yield Heading("Length of traces")
    if "length" in charts:
        yield Chart("length", "Mean length by verdict and by correctness.")
    yield tables.lengths_grid(entries)


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
