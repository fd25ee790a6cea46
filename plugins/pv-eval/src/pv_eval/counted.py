"""Counted run: a run from disk whose set was checked and whose votes were counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pv_eval.checks import Finding, check, imply_labels
from pv_eval.counts import VoteCounts, count_votes
from pv_eval.graded import Graded, Scale, grades_of
from pv_eval.intervals import Intervals
from pv_eval.run_files import RunInfo, read_run
from pv_eval.steps import Steps, steps_of
from pv_eval.votes import Pair, Vote
from pv_rl.errors import DataError

__all__ = ["CountedRun", "read_counted"]


@dataclass(frozen=True, kw_only=True)
class CountedRun:
    """A run, and its votes by pair."""

    folder: Path
    info: RunInfo
    pairs: Sequence[Pair]
    """All of the set. Where no pair has a label, a grade or a first wrong step gives one (`imply_labels`)."""
    votes: Sequence[Vote]
    counts: VoteCounts
    """Of the pairs that have a label and votes."""
    problems: tuple[Finding, ...]

    def grades(self, how: Intervals) -> Graded | None:
        """Grade metrics; None where pairs or votes have no grades.

        Raises:
            PvRlError: see `grades_of`.
        """
        return grades_of(self.pairs, self.votes, Scale.of(self.info), how)

    def first_errors(self, how: Intervals) -> Steps | None:
        """First-error metrics; None where pairs or votes have no first wrong steps."""
        return steps_of(self.pairs, self.votes, self.info, how)


def read_counted(folder: Path, *, traces: bool = True) -> CountedRun:
    """Read, check and count.

    Args:
        folder: see `pv_eval.run_files`.
        traces: whether votes have their traces, by far the largest column.

    Raises:
        DataError: the run cannot be read, or its numbers cannot be trusted.
        OSError: a file cannot be read.
    """
    pairs, votes, info = read_run(folder, traces=traces)
    scale = Scale.of(info)
    labelled, implied = imply_labels(pairs, None if scale is None else scale.accept_share)
    checked = check(labelled, votes)
    try:
        counts = count_votes(checked)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    problems = (*implied, *checked.problems)
    return CountedRun(folder=folder, info=info, pairs=labelled, votes=votes, counts=counts, problems=problems)
