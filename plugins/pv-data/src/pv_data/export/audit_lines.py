"""Audit table of the dataset card: one line a slice, with what people found and whether it is trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from pv_data.audit.evidence import Group, Proven
from pv_data.audit.tables import by_question
from pv_data.export.dataset_folder import Written

__all__ = ["AuditLine", "audit_lines", "standing_of", "trained_on"]

ACCEPTED, FAILED, OPEN, UNREAD = "accepted", "failed", "open", "not audited"


@dataclass(frozen=True, kw_only=True)
class AuditLine:
    """Of a slice, or of several together."""

    name: str
    standing: str
    """`accepted`, `failed`, `open`, `not audited`, or that there is nothing to audit."""
    agree: str
    least: str
    """The bound of the agreement; of a slice, about the proofs that it has."""
    together: str
    by_question: str
    train: str
    """Labels of the panel in the training set; `left out` where the settings say so."""


def audit_lines(proven: Proven, written: Written, discarded: Collection[str]) -> list[AuditLine]:
    """Every slice of the run or of the set; then all with marks, each class of them, and the accepted ones.

    Args:
        discarded: slices whose labels of the panel the settings leave out.
    """
    lines = []
    for name in sorted({*proven.states, *(name for _, name, _ in written.slices)}):
        group, number = proven.audited.slices.get(name), written.by_panel["train", name]
        whole = group is not None and group.checked == proven.states[name].size
        train = "left out" if name in discarded else f"{number:,}"
        lines.append(_line(name, standing_of(proven, name), group, train, whole=whole))
    for name, evidence in (("all audited", proven.audited), ("all accepted", proven.accepted)):
        if evidence is not None:
            lines.append(_line(name, "-", evidence.pooled, "-"))
            lines += [
                _line(f"{name}, labelled {label}", "-", evidence.classes[label], "-")
                for label in ("correct", "wrong")
            ]
    return lines


def standing_of(proven: Proven, name: str) -> str:
    """Of one slice, in the card's words."""
    if name not in proven.states:
        return "no label of the panel"
    if name not in proven.audited.slices:
        return UNREAD
    return {"accept": ACCEPTED, "discard": FAILED, "open": OPEN}[proven.states[name].verdict]


def trained_on(proven: Proven, written: Written) -> Counter[str]:
    """Labels of the panel in the training set, by the standing of their slices."""
    found: Counter[str] = Counter()
    for (split, name), number in written.by_panel.items():
        if split == "train":
            found[standing_of(proven, name)] += number
    return found


def _line(name: str, standing: str, group: Group | None, train: str, *, whole: bool = False) -> AuditLine:
    if group is None or not group.checked:
        agree = least = together = questions = "-"
    else:
        agree, least = f"{group.agree} of {group.checked}", f"{group.lower:.3f}"
        together = "-" if group.lower_together is None else f"{group.lower_together:.3f}"
        questions = by_question(group, whole=whole)
    return AuditLine(
        name=name,
        standing=standing,
        agree=agree,
        least=least,
        together=together,
        by_question=questions,
        train=train,
    )
