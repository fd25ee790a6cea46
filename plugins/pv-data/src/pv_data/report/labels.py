"""Label quality: the panel's labels against what is known, and what another rule would have made of the same votes.

For a rule and a slice, `kept` proofs of `judged` get a label. Among those whose truth is known:

    precision of True = labelled True and right / labelled True            what trains on a right proof, really is one
    recall of True    = labelled True and right / right proofs judged      a proof that gets no label counts as missed

and the same for False. Unanimity is meant to raise precision and pays for it with recall. Intervals are exact
(Clopper-Pearson, 95 %, `pv_data.audit.interval`), for proofs taken as independent; several proofs of one question are
not quite.

Example: three right proofs with votes TTT, TTF, TFF and one wrong with TTF. Unanimity labels the first only: precision
of True 1/1, recall 1/3. Majority labels True, True, False, True: precision of True 2/3, recall 2/3, of False 0/1, 0/1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pv_data.records import Label
from pv_data.report.agreement import (
    CONFIDENCE,
    Ballot,
    Peers,
    Raters,
    Ratio,
    ballots,
    peers,
    raters,
    ratio,
)
from pv_rl.errors import DataError

__all__ = ["JudgeQuality", "LabelReport", "Ratio", "RuleQuality", "SliceQuality", "measure_labels"]

POOLED = "all slices"
RULES = ("unanimous", "majority", "of this run")

T = TypeVar("T", bound=Hashable)

Pattern: TypeAlias = "tuple[int, int, bool | None, bool | None]"
"""Votes for True, votes, the label of the run, what is known. Few differ: a report of any size counts them."""


@dataclass(frozen=True, kw_only=True)
class RuleQuality:
    """One rule's labels."""

    rule: str
    """`unanimous`: all votes are the same. `majority`: more than half are. `of this run`: as the run labelled them."""
    kept: Ratio
    """Labelled of judged."""
    right: Ratio
    """Labels that are true, of those where it is known."""
    precision_true: Ratio
    recall_true: Ratio
    precision_false: Ratio
    recall_false: Ratio


@dataclass(frozen=True, kw_only=True)
class JudgeQuality:
    """One judge's votes. Several on the same proof are counted together, and have no interval: they are correlated."""

    judge: str
    accepts: Ratio
    """Votes for True of all its votes."""
    right: Ratio
    """Votes that are true, of those where it is known."""
    on_right: Ratio
    """Right proofs that it accepts."""
    on_wrong: Ratio
    """Wrong proofs that it rejects."""
    peers: Peers
    """Beside the other judges, and beside itself."""


@dataclass(frozen=True, kw_only=True)
class SliceQuality:
    """One slice, or all together."""

    slice: str
    judged: int
    known_true: int
    known_false: int
    rules: tuple[RuleQuality, ...]
    agreement: Raters
    judges: tuple[JudgeQuality, ...]


@dataclass(frozen=True, kw_only=True)
class LabelReport:
    """All of it."""

    pooled: SliceQuality
    slices: tuple[SliceQuality, ...]
    run_rules: tuple[str, ...]
    """As the labels name them."""
    confidence: float = CONFIDENCE


def measure_labels(labels: Iterable[Label]) -> LabelReport:
    """Read labels once, one after another.

    Raises:
        DataError: a label whose votes and judges are not as many.
    """
    patterns = defaultdict[str, Counter[Pattern]](Counter)
    votes = defaultdict[str, Counter[tuple[str, bool, bool | None]]](Counter)
    cast = defaultdict[str, Counter[Ballot]](Counter)
    names, repeated = set[str](), set[str]()
    for label in labels:
        if len(label.votes) != len(label.judges):
            raise DataError(
                f"the label of the proof {label.proof_id} has {len(label.votes)} votes of {len(label.judges)} judges; "
                "make the labels again"
            )
        names.add(label.rule)
        patterns[label.slice][sum(label.votes), len(label.votes), label.value, label.known] += 1
        for judge, vote in zip(label.judges, label.votes, strict=True):
            votes[label.slice][judge, vote, label.known] += 1
        of_proof = ballots(label.judges, label.votes)
        cast[label.slice].update(of_proof)
        repeated |= {one.judge for one in of_proof if one.votes > 1}
    return LabelReport(
        pooled=_slice(POOLED, _all(patterns), _all(votes), _all(cast), repeated),
        slices=tuple(
            _slice(name, patterns[name], votes[name], cast[name], repeated) for name in sorted(patterns)
        ),
        run_rules=tuple(sorted(names)),
    )


def _all(tables: Mapping[str, Counter[T]]) -> Counter[T]:
    return sum(tables.values(), Counter[T]())


def _slice(
    name: str,
    patterns: Counter[Pattern],
    votes: Counter[tuple[str, bool, bool | None]],
    cast: Counter[Ballot],
    repeated: Collection[str],
) -> SliceQuality:
    agreeing: Counter[tuple[int, int]] = Counter()
    for (yes, total, _, _), number in patterns.items():
        agreeing[yes, total] += number
    return SliceQuality(
        slice=name,
        judged=patterns.total(),
        known_true=sum(number for (*_, known), number in patterns.items() if known is True),
        known_false=sum(number for (*_, known), number in patterns.items() if known is False),
        rules=tuple(_rule(rule, patterns) for rule in RULES),
        agreement=raters(agreeing),
        judges=tuple(
            _judge(judge, votes, cast, interval=judge not in repeated)
            for judge in sorted({judge for judge, _, _ in votes})
        ),
    )


def _label(rule: str, pattern: Pattern) -> bool | None:
    yes, total, value, _ = pattern
    if rule == "of this run":
        return value
    needed = total if rule == "unanimous" else total // 2 + 1
    return None if not total else True if yes >= needed else False if total - yes >= needed else None


def _rule(rule: str, patterns: Counter[Pattern]) -> RuleQuality:
    cells: Counter[tuple[bool | None, bool | None]] = Counter()
    for pattern, number in patterns.items():
        cells[_label(rule, pattern), pattern[3]] += number
    right_true, right_false = cells[True, True], cells[False, False]
    labelled = {label: cells[label, True] + cells[label, False] for label in (True, False)}
    known = {truth: sum(cells[label, truth] for label in (True, False, None)) for truth in (True, False)}
    return RuleQuality(
        rule=rule,
        kept=ratio(sum(n for (label, _), n in cells.items() if label is not None), cells.total()),
        right=ratio(right_true + right_false, sum(labelled.values())),
        precision_true=ratio(right_true, labelled[True]),
        recall_true=ratio(right_true, known[True]),
        precision_false=ratio(right_false, labelled[False]),
        recall_false=ratio(right_false, known[False]),
    )


def _judge(
    judge: str, votes: Counter[tuple[str, bool, bool | None]], cast: Counter[Ballot], *, interval: bool
) -> JudgeQuality:
    cells = {
        (vote, known): votes[judge, vote, known] for vote in (True, False) for known in (True, False, None)
    }
    accepted = sum(number for (vote, _), number in cells.items() if vote)
    right_true, right_false = cells[True, True], cells[False, False]
    true, false = right_true + cells[False, True], right_false + cells[True, False]
    return JudgeQuality(
        judge=judge,
        accepts=ratio(accepted, sum(cells.values()), interval),
        right=ratio(right_true + right_false, true + false, interval),
        on_right=ratio(right_true, true, interval),
        on_wrong=ratio(right_false, false, interval),
        peers=peers({one: n for one, n in cast.items() if one.judge == judge}, interval=interval),
    )
