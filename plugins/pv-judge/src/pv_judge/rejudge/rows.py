"""Rows of a replay: a ledger's row, and the new judgment of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DECISIONS", "THRESHOLD", "Judgment", "OldRow", "decide", "old_rows"]

THRESHOLD = 0.5
"""The default of the reward `verdict_fluency`."""
DECISIONS = ("fluent", "vetoed")


@dataclass(frozen=True, kw_only=True)
class OldRow:
    """A row of a ledger, as far as it matters here."""

    row_id: str
    uid: str
    session: int | None
    step: int | None
    decision: str
    decided_by: str
    judge_fluent: bool | None
    confidence: float | None
    verdict: bool | None
    reward: float | None
    """What was handed on; None where the row had no reward."""
    inner: float | None
    """What it earns if it is fluent; None where that is not known."""
    usd: float | None = 0.0
    """None where a model without a price was asked."""
    human: bool | None = None
    """Whether a human calls it anomalous; None where nobody has looked."""

    @property
    def by_rules(self) -> bool:
        """Whether a rule vetoed it."""
        return self.decision == "vetoed" and self.decided_by == "rules"

    @property
    def judged(self) -> str | None:
        """What the judge decided, where one did."""
        return self.decision if self.decided_by == "judge" and self.decision in DECISIONS else None


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """A new answer, or none."""

    fluent: bool | None = None
    """None: no usable answer."""
    confidence: float | None = None
    text: str | None = None
    failure: str | None = None
    """Kind of the failure."""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0
    """Likewise."""
    cached: bool = False


def old_rows(table: pa.Table) -> list[OldRow]:
    """The rows of `read_ledger`, with the marks of a column `human` where there is one.

    Raises:
        DataError: that column does not hold booleans.
    """
    import pyarrow as pa

    names = ["row_id", "uid", "session", "step", "decision", "decided_by", "judge_fluent", "confidence"]
    names += ["verdict", "usd", "score", "valid", "inner_score"]
    columns = {name: table.column(name).to_pylist() for name in names}
    if "human" in table.column_names:
        try:
            columns["human"] = table.column("human").cast(pa.bool_()).to_pylist()
        except pa.ArrowException as error:
            raise DataError(
                f"the ledger's column human says of rows whether they are anomalous: {error}"
            ) from error
    rows = []
    for one in zip(*columns.values(), strict=True):
        values = dict(zip(columns, one, strict=True))
        score, valid, inner = values.pop("score"), values.pop("valid"), values.pop("inner_score")
        reward = score if valid else None
        known = reward if values["decision"] == "fluent" else inner
        rows.append(OldRow(**values, reward=reward, inner=known))
    return rows


def decide(row: OldRow, judgment: Judgment | None, threshold: float | None) -> str:
    """The new decision; without a judgment the old answer is held to the threshold. None: THRESHOLD for a judgment."""
    if row.by_rules:
        return row.decision
    if judgment is not None and judgment.fluent is None:
        return "failed"
    if judgment is not None:
        fluent, confidence = judgment.fluent, judgment.confidence
        threshold = THRESHOLD if threshold is None else threshold
    else:
        fluent, confidence = row.judge_fluent, row.confidence
    if threshold is None or fluent is None or confidence is None:
        return row.decision
    return "vetoed" if not fluent and confidence >= threshold else "fluent"
