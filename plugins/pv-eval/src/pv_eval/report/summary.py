"""Summary of an evaluation: one or several verifiers, each on a set, and how later ones compare with the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pv_eval.best_of import BestOf, best_of_set
from pv_eval.checks import check, imply_labels
from pv_eval.counts import VoteCounts, count_votes
from pv_eval.evaluation import Evaluation, evaluate
from pv_eval.graded import Graded, Scale, grades_of
from pv_eval.intervals import Bootstrap
from pv_eval.paired import Comparison, compare
from pv_eval.report.cases import Case, Split, disagreements, worst_errors
from pv_eval.run_files import RunInfo, read_run
from pv_eval.steps import Steps, steps_of
from pv_rl.errors import DataError

__all__ = ["Entry", "Summary", "Versus", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One verifier on one set."""

    name: str
    """As tables show it, unique in the report."""
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
    """A later verifier against the first."""

    second: Entry
    comparison: Comparison | None
    """None where there is nothing to compare, and `reason` says why."""
    reason: str
    splits: Sequence[Split]


@dataclass(frozen=True, kw_only=True)
class Summary:
    entries: Sequence[Entry]
    versus: Sequence[Versus]
    how: Bootstrap
    cases: int
    """How many single cases of a kind are shown; 0 for none."""


def summarise(folders: Sequence[Path], how: Bootstrap, *, cases: int = 3) -> Summary:
    """Read and measure.

    Args:
        folders: runs on disk, the first is what others are compared with.
        how: of the intervals.
        cases: errors of each class, and disagreements each way, that are picked to show.

    Raises:
        DataError: a run cannot be read or is refused.
    """
    entries: list[Entry] = []
    for folder in folders:
        pairs, votes, info = read_run(folder)
        try:
            scale = Scale.of(info)
            labelled, implied = imply_labels(pairs, None if scale is None else scale.accept_share)
            checked = check(labelled, votes)
            counts = count_votes(checked)
            graded, steps = grades_of(pairs, votes, scale, how), steps_of(pairs, votes, info, how)
        except DataError as error:
            raise DataError(f"{folder}: {error}") from error
        names = [entry.name for entry in entries]
        name = info.verifier if info.verifier not in names else f"{info.verifier} ({len(entries) + 1})"
        several = len(counts.questions) < len(counts.pairs)
        entries.append(
            Entry(
                name=name,
                info=info,
                counts=counts,
                evaluation=evaluate(counts, how, problems=(*implied, *checked.problems)),
                best_of=best_of_set(counts, how) if several else None,
                accepted_wrong=worst_errors(counts, False, cases),
                rejected_right=worst_errors(counts, True, cases),
                graded=graded,
                steps=steps,
            )
        )
    return Summary(
        entries=entries,
        versus=[_versus(entries[0], entry, how, cases) for entry in entries[1:]],
        how=how,
        cases=cases,
    )


def _versus(first: Entry, second: Entry, how: Bootstrap, cases: int) -> Versus:
    try:
        comparison = compare(first.counts, second.counts, how)
        splits = disagreements(first.counts, second.counts, cases)
    except DataError as error:  # of another set: the report still has a line for each
        return Versus(second=second, comparison=None, reason=str(error), splits=())
    return Versus(second=second, comparison=comparison, reason="", splits=splits)
