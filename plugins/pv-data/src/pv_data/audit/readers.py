"""Readers of an audit: marks and hours of each person, and the agreement of those who read blind.

Of each proof every person's latest mark counts. Agreement is of blind marks: a third reader, who has seen the reasons
of two others, is left out of it. "Cannot tell" is no answer on which two could agree; it is counted beside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median
from typing import Any

from pv_data.audit.marks import in_dispute
from pv_data.records import AuditMark
from pv_data.report.agreement import Raters, raters
from pv_judge.agreement import Agreement, agreement

__all__ = ["LONGEST_S", "Pair", "Reader", "Readers", "readers"]

LONGEST_S = 3600.0
"""Seconds that a mark can add to a person's hours: a proof that was open overnight was not read overnight."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One person."""

    auditor: str
    marks: int
    cannot_tell: int
    third: int
    """Marks to decide between two others."""
    timed: int
    """Marks with a time; sheets have none."""
    hours: float
    """Of these, each counted as `LONGEST_S` at most."""
    minutes: float | None
    """The median of these."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two people on the proofs that both read blind and could decide."""

    auditors: tuple[str, str]
    agreement: Agreement
    """Raw and Cohen's kappa, with intervals by question."""


@dataclass(frozen=True, kw_only=True)
class Readers:
    """All of them."""

    people: Sequence[Reader]
    by_number: Mapping[int, int]
    """Proofs by the number of their readers."""
    pairs: Sequence[Pair]
    blind: Raters
    """All blind marks together, for Krippendorff's alpha: people need not have read the same proofs."""
    in_dispute: int
    """Proofs that a third person could settle."""
    unsettled: int
    """Proofs that their readers left without an answer."""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def readers(latest: Mapping[str, Sequence[AuditMark]]) -> Readers:
    """Count the marks of `latest_marks`: of each proof the last one of each person."""
    by_person = defaultdict[str, list[AuditMark]](list)
    shared = defaultdict[tuple[str, str], list[tuple[AuditMark, AuditMark]]](list)
    patterns = Counter[tuple[int, int]]()
    for marks in latest.values():
        for mark in marks:
            by_person[mark.auditor].append(mark)
        decided = sorted(
            (mark for mark in marks if not mark.third and mark.human is not None),
            key=lambda mark: mark.auditor,
        )
        patterns[sum(mark.human is True for mark in decided), len(decided)] += 1
        for first, second in combinations(decided, 2):
            shared[first.auditor, second.auditor].append((first, second))
    disputes = Counter(in_dispute(marks) for marks in latest.values())
    return Readers(
        people=[_reader(name, marks) for name, marks in sorted(by_person.items())],
        by_number=dict(sorted(Counter(map(len, latest.values())).items())),
        pairs=[Pair(auditors=names, agreement=_agreement(both)) for names, both in sorted(shared.items())],
        blind=raters(patterns),
        in_dispute=disputes[True],
        unsettled=disputes[None],
    )


def _reader(name: str, marks: Sequence[AuditMark]) -> Reader:
    times = [min(mark.seconds, LONGEST_S) for mark in marks if mark.seconds is not None]
    return Reader(
        auditor=name,
        marks=len(marks),
        cannot_tell=sum(mark.human is None for mark in marks),
        third=sum(mark.third for mark in marks),
        timed=len(times),
        hours=sum(times) / 3600,
        minutes=median(times) / 60 if times else None,
    )


def _agreement(both: Sequence[tuple[AuditMark, AuditMark]]) -> Agreement:
    first, second = ([pair[place].human for pair in both] for place in (0, 1))
    return agreement(first, second, (True, False), clusters=[mark.problem_id for mark, _ in both])
