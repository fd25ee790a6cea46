"""Which label a proof gets where several are known: that of people, of its source or making, or of the panel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pv_data.records import AuditMark, Label, Proof
from pv_rl.errors import ConfigError, DataError

__all__ = ["AUTHORITIES", "LabelRules", "LeftOut", "Panel", "Won", "latest_marks", "panel_labels", "winner"]

AUTHORITIES = ("audit", "known", "panel")
"""`audit`: people who marked the proof in the audit. `known`: its source, or how it was made. `panel`: the judges."""


@dataclass(frozen=True, kw_only=True)
class LabelRules:
    """Whose label counts, the first that there is; one that is not named does not count."""

    train: tuple[str, ...] = AUTHORITIES
    test: tuple[str, ...] = AUTHORITIES
    """`("audit",)` makes a test set that people have read throughout, as the paper's."""
    discarded: frozenset[str] = frozenset()
    """Slices that failed their audit: the panel's labels do not count there."""

    def __post_init__(self) -> None:
        for split, order in (("train", self.train), ("test", self.test)):
            if not order or set(order) - set(AUTHORITIES) or len(set(order)) < len(order):
                raise ConfigError(
                    f"labels for {split} by {', '.join(order) or 'nobody'}; name each of "
                    f"{', '.join(AUTHORITIES)} once at most, in the order in which they count"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """What of a `Label` the export needs. Few differ, so that a hundred thousand take little memory."""

    value: bool | None
    rule: str
    votes: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Won:
    """A label, and whose."""

    label: bool
    rule: str
    """`audit: 2 of 2`, `known: final answer`, `panel: unanimous 5 of 5`."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """There is none."""

    reason: str
    detail: str = ""


def panel_labels(labels: Iterable[Label]) -> dict[str, Panel]:
    """By proof id.

    Raises:
        DataError: two different labels of one proof.
    """
    same: dict[Panel, Panel] = {}
    found: dict[str, Panel] = {}
    for label in labels:
        panel = Panel(value=label.value, rule=label.rule, votes=label.votes)
        panel = same.setdefault(panel, panel)
        if found.setdefault(label.proof_id, panel) != panel:
            raise DataError(
                f"the proof {label.proof_id} has two labels that differ; export one run at a time"
            )
    return found


def latest_marks(marks: Iterable[AuditMark]) -> dict[str, tuple[AuditMark, ...]]:
    """By proof id, the last mark of each auditor: by its time, and in the order given where times are the same."""
    found = defaultdict[str, dict[str, AuditMark]](dict)
    for mark in marks:
        of_proof = found[mark.proof_id]
        before = of_proof.get(mark.auditor)
        if before is None or mark.time >= before.time:
            of_proof[mark.auditor] = mark
    return {proof: tuple(by_auditor.values()) for proof, by_auditor in found.items()}


def winner(
    proof: Proof, panel: Panel | None, marks: Sequence[AuditMark], order: Sequence[str], *, discarded: bool
) -> Won | LeftOut:
    """The label of the first authority that has one.

    Auditors decide by majority. Where they are split evenly nobody else decides for them: the proof is left out.

    Args:
        marks: one an auditor.
        order: of `AUTHORITIES`.
        discarded: whether the proof's slice failed its audit.
    """
    for authority in order:
        if authority == "audit" and marks:
            right, number = sum(mark.human for mark in marks), len(marks)
            if 2 * right == number:
                return LeftOut(reason="auditors disagree", detail=f"{right} of {number} find it right")
            return Won(label=2 * right > number, rule=f"audit: {max(right, number - right)} of {number}")
        if authority == "known" and proof.known is not None:
            return Won(label=proof.known, rule=f"known: {proof.known_by or 'not said how'}")
        if authority == "panel" and panel is not None and panel.value is not None and not discarded:
            return Won(label=panel.value, rule=f"panel: {panel.rule}")
    if panel is None:
        return LeftOut(reason="no label", detail="neither marked, nor known, nor judged")
    if panel.value is None:
        return LeftOut(reason="judges disagree", detail=f"{sum(panel.votes)} of {len(panel.votes)} accept it")
    if discarded:
        return LeftOut(reason="slice not accepted", detail=proof.slice)
    return LeftOut(reason="label of the panel only", detail=panel.rule)
