"""Comparison of old and new decisions: a ledger's rows in, a report out. It sends no request.

What the rules vetoed stays vetoed, since they come first. All other rows are decided anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pv_judge.agreement import Agreement, Estimate, agreement, wilson
from pv_judge.rejudge.rows import DECISIONS, Judgment, OldRow, decide

__all__ = ["MarkRates", "Report", "RewardLine", "compare"]


@dataclass(frozen=True, kw_only=True)
class MarkRates:
    """Decisions against human marks."""

    found: tuple[int, int]
    """Vetoed of those that are anomalous."""
    wrong: tuple[int, int]
    """Vetoed of those that are not."""
    true_positive: Estimate
    false_positive: Estimate
    agreement: Agreement


@dataclass(frozen=True, kw_only=True)
class RewardLine:
    """Rewards of some rows, as they were and as they would have been."""

    rows: int
    old_rewarded: int
    """Rows that had a reward."""
    old_mean: float | None
    """Over these."""
    new_rewarded: int
    new_mean: float | None
    changed: int
    """Rows that get another reward, lose theirs or get one."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is known of a replay."""

    rows: int
    by_rules: int
    """Vetoed by rules: they stay, and are in no table of judges."""
    decisions: Mapping[str, str]
    """By row id: the new decision."""
    confusion: Mapping[tuple[str, str], int]
    """(old, new) of the rows that were decided anew; old may also be `not asked`, `failed` or `unjudged`."""
    agreement: Agreement
    """Of the judges, over the rows that both have decided."""
    failures: Mapping[str, int]
    """New judgments that failed, by kind."""
    old_marks: MarkRates | None
    """Of all decisions, those of rules included; None without marks."""
    new_marks: MarkRates | None
    veto: str
    """What a veto costs: `zero` or `abstain`, as in the ledger."""
    new_rewards: Mapping[str, float | None]
    """By row id; None for no reward. A row is left out where the new judge failed, or where the ledger does not say
    what it earns without a veto."""
    rewards: Mapping[str, RewardLine]
    """Of the rows in `new_rewards`: `all`, and by verdict: `verdict True`, `verdict False`, `no verdict`."""
    old_usd: float | None
    """None where not all of it is known, likewise `usd`."""
    requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    cached: int
    """Answers that cost nothing, because they were known."""


def compare(
    rows: Sequence[OldRow], judgments: Mapping[str, Judgment], threshold: float | None = None
) -> Report:
    """Put old and new decisions beside each other.

    Args:
        rows: of the ledger.
        judgments: by row id, of a new judge; empty to hold the old answers to `threshold`.
        threshold: the confidence from which a judge's finding vetoes.
    """
    new = {row.row_id: decide(row, judgments.get(row.row_id), threshold) for row in rows}
    open_rows = [row for row in rows if not row.by_rules]
    both = [row for row in open_rows if row.judged and new[row.row_id] in DECISIONS]
    veto = "abstain" if any(row.decision == "vetoed" and row.reward is None for row in rows) else "zero"
    new_rewards = _new_rewards(rows, new, veto)
    marked = [row for row in rows if row.human is not None]
    given = judgments.values()
    return Report(
        rows=len(rows),
        by_rules=len(rows) - len(open_rows),
        decisions=new,
        confusion=dict(Counter((_old_name(row), new[row.row_id]) for row in open_rows)),
        agreement=agreement(
            [row.decision for row in both],
            [new[row.row_id] for row in both],
            DECISIONS,
            clusters=[row.uid or row.row_id for row in both],
        ),
        failures=dict(Counter(one.failure for one in given if one.failure is not None)),
        old_marks=_against_marks(marked, {row.row_id: row.decision for row in marked}) if marked else None,
        new_marks=_against_marks(marked, new) if marked else None,
        veto=veto,
        new_rewards=new_rewards,
        rewards=_lines([row for row in rows if row.row_id in new_rewards], new_rewards),
        old_usd=_sum(row.usd for row in rows),
        requests=sum(one.requests for one in given),
        prompt_tokens=sum(one.prompt_tokens for one in given),
        completion_tokens=sum(one.completion_tokens for one in given),
        usd=_sum(one.usd for one in given),
        cached=sum(one.cached for one in given),
    )


def _sum(dollars: Iterable[float | None]) -> float | None:
    known = list(dollars)
    return None if None in known else sum(one for one in known if one is not None)


def _old_name(row: OldRow) -> str:
    return "not asked" if row.decision == "fluent" and row.decided_by == "rules" else row.decision


def _against_marks(rows: Sequence[OldRow], decisions: Mapping[str, str]) -> MarkRates:
    """Rows without a decision (failed, unjudged) do not count."""
    decided = [row for row in rows if decisions[row.row_id] in DECISIONS]
    vetoed = [decisions[row.row_id] == "vetoed" for row in decided]
    human = [bool(row.human) for row in decided]
    cells = Counter(zip(human, vetoed, strict=True))
    found = (cells[True, True], cells[True, True] + cells[True, False])
    wrong = (cells[False, True], cells[False, True] + cells[False, False])
    return MarkRates(
        found=found,
        wrong=wrong,
        true_positive=wilson(*found),
        false_positive=wilson(*wrong),
        agreement=agreement(
            human, vetoed, (False, True), clusters=[row.uid or row.row_id for row in decided]
        ),
    )


def _new_rewards(rows: Sequence[OldRow], decisions: Mapping[str, str], veto: str) -> dict[str, float | None]:
    rewards: dict[str, float | None] = {}
    for row in rows:
        decision = decisions[row.row_id]
        if decision == row.decision:
            rewards[row.row_id] = row.reward
        elif decision == "vetoed":
            rewards[row.row_id] = 0.0 if veto == "zero" else None
        elif decision == "fluent" and row.inner is not None:
            rewards[row.row_id] = row.inner
    return rewards


def _lines(rows: Sequence[OldRow], rewards: Mapping[str, float | None]) -> dict[str, RewardLine]:
    kinds: dict[str, list[OldRow]] = {"all": list(rows)}
    for name, verdict in (("verdict True", True), ("verdict False", False), ("no verdict", None)):
        kinds[name] = [row for row in rows if row.verdict is verdict]
    return {name: _line(some, rewards) for name, some in kinds.items() if some}


def _line(rows: Sequence[OldRow], rewards: Mapping[str, float | None]) -> RewardLine:
    old = [row.reward for row in rows if row.reward is not None]
    new = [reward for row in rows if (reward := rewards[row.row_id]) is not None]
    return RewardLine(
        rows=len(rows),
        old_rewarded=len(old),
        old_mean=sum(old) / len(old) if old else None,
        new_rewarded=len(new),
        new_mean=sum(new) / len(new) if new else None,
        changed=sum(row.reward != rewards[row.row_id] for row in rows),
    )
