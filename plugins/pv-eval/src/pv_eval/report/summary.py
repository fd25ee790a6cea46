"""Summary of an evaluation: verifiers by set, and how the later ones of a set compare with the set's first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pv_eval.best_of import BestOf, best_of_set
from pv_eval.counted import CountedRun, read_counted
from pv_eval.counts import VoteCounts
from pv_eval.evaluation import Evaluation, evaluate
from pv_eval.graded import Graded, GradeVersus, Scale, compare_with_first
from pv_eval.intervals import Intervals
from pv_eval.paired import Comparison, common, compare
from pv_eval.report.cases import Case, Split, disagreements, worst_errors
from pv_eval.report.names import tails, tell_apart
from pv_eval.run_files import RunInfo
from pv_eval.steps import Steps
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["Entry", "Group", "Summary", "Versus", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One verifier on one set."""

    name: str
    """As tables show it, unique in its group."""
    info: RunInfo
    counts: VoteCounts
    evaluation: Evaluation
    best_of: BestOf | None
    """None where no question has two proofs."""
    accepted_wrong: Sequence[Case]
    rejected_right: Sequence[Case]
    graded: Graded | None = None
    """None where the verifier gave no grades."""
    steps: Steps | None = None
    """None where it named no wrong steps."""


@dataclass(frozen=True, kw_only=True)
class Versus:
    """A later verifier against the first of its group."""

    second: Entry
    comparison: Comparison
    splits: Sequence[Split]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The verifiers of one set: runs with the same set name that share pairs."""

    name: str
    """As headings show it, unique in the report."""
    set_name: str
    """As the runs have it; may be empty."""
    entries: Sequence[Entry]
    """One or more; the first is what others are compared with."""
    versus: Sequence[Versus]
    grades_versus: Sequence[GradeVersus]
    """Later verifiers that gave grades, against the first that did."""
    grades_apart: Sequence[str]
    """Why the grades of other verifiers are not compared."""
    cases: int
    """How many single cases of a kind are shown; 0 for none."""
    prefix: str
    """Of the names of its figures; empty where the report has one group."""
    apart: str
    """Why it is not one with an earlier group of its set name; empty where there is none."""

    @property
    def first(self) -> Entry:
        """The base of comparison."""
        return self.entries[0]


@dataclass(frozen=True, kw_only=True)
class Summary:
    groups: Sequence[Group]
    """By set, in the order of their first runs."""
    how: Intervals
    cases: int
    """See `Group`."""

    @property
    def entries(self) -> list[Entry]:
        """Of all groups."""
        return [entry for group in self.groups for entry in group.entries]


def summarise(folders: Sequence[Path], how: Intervals, *, cases: int = 3) -> Summary:
    """Read and measure.

    Args:
        folders: runs on disk, each once. The first of each set is what others of the set are compared with.
        how: of the intervals.
        cases: errors of each class, and disagreements each way, that are picked to show.

    Raises:
        DataError: a run cannot be read or is refused.
    """
    sets: list[list[CountedRun]] = []
    reasons: list[str] = []
    for folder in folders:
        run = read_counted(folder)
        home, reason = _find_set(run, sets)
        if home is None:
            sets.append([run])
            reasons.append(reason)
        else:
            home.append(run)
    firsts = [runs[0] for runs in sets]
    names = tell_apart(
        [one.info.set_name or "a set without a name" for one in firsts],
        [
            (_size(one.counts), end)
            for one, end in zip(firsts, tails([one.folder for one in firsts]), strict=True)
        ],
    )
    groups = [
        _group(runs, how, cases, name=name, prefix=f"set{number}_" if len(sets) > 1 else "", apart=reason)
        for number, (runs, name, reason) in enumerate(zip(sets, names, reasons, strict=True), 1)
    ]
    return Summary(groups=groups, how=how, cases=cases)


def _size(counts: VoteCounts) -> str:
    return f"{plural(len(counts.pairs), 'pair')} of {plural(len(counts.questions), 'question')}"


def _find_set(run: CountedRun, sets: Sequence[list[CountedRun]]) -> tuple[list[CountedRun] | None, str]:
    """The runs of the same set, or None and why those of the same set name are of another."""
    reason = ""
    for runs in sets:
        if runs[0].info.set_name == run.info.set_name:
            try:
                common(runs[0].counts, run.counts)
            except DataError as error:
                reason = reason or str(error)
            else:
                return runs, ""
    return None, reason


def _group(
    runs: Sequence[CountedRun], how: Intervals, cases: int, *, name: str, prefix: str, apart: str
) -> Group:
    names = tell_apart(
        [run.info.verifier for run in runs],
        [(*_sampling(run), end) for run, end in zip(runs, tails([run.folder for run in runs]), strict=True)],
    )
    entries = [_entry(run, how, cases, name=one) for run, one in zip(runs, names, strict=True)]
    first = entries[0]
    graded = [
        (entry.name, run.pairs, run.votes, scale)
        for entry, run in zip(entries, runs, strict=True)
        if entry.graded is not None and (scale := Scale.of(run.info)) is not None
    ]
    versus = [
        Versus(
            second=entry,
            comparison=compare(first.counts, entry.counts, how),
            splits=disagreements(first.counts, entry.counts, cases),
        )
        for entry in entries[1:]
    ]
    grades_versus, grades_apart = compare_with_first(graded, how)
    return Group(
        name=name,
        set_name=runs[0].info.set_name,
        entries=entries,
        versus=versus,
        grades_versus=grades_versus,
        grades_apart=grades_apart,
        cases=cases,
        prefix=prefix,
        apart=apart,
    )


def _sampling(run: CountedRun) -> tuple[str, ...]:
    info, samples = run.info, run.counts.samples
    fewest, most = int(samples.min()), int(samples.max())
    return (
        "temperature " + ("unknown" if info.temperature is None else f"{info.temperature:g}"),
        f"n {fewest}" if fewest == most else f"n {fewest} to {most}",
        "seed " + ("unknown" if info.seed is None else str(info.seed)),
        f"format {info.verdict_format}",
    )


def _entry(run: CountedRun, how: Intervals, cases: int, *, name: str) -> Entry:
    counts = run.counts
    several = len(counts.questions) < len(counts.pairs)
    return Entry(
        name=name,
        info=run.info,
        counts=counts,
        evaluation=evaluate(counts, how, problems=run.problems),
        best_of=best_of_set(counts, how) if several else None,
        accepted_wrong=worst_errors(counts, False, cases),
        rejected_right=worst_errors(counts, True, cases),
        graded=run.grades(how),
        steps=run.first_errors(how),
    )
