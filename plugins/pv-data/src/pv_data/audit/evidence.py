"""Audit evidence: bounds of the agreement for each slice, pooled, and by class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pv_data.audit.bounds import Method, confidence_each, lower_bound
from pv_data.audit.clusters import Clustered, clustered_lower_bound
from pv_data.audit.marks import Mark, SliceState, checked_marks, slice_states
from pv_data.audit.plan import Rounds
from pv_rl.errors import DataError

__all__ = ["Evidence", "Group", "Proven", "prove", "weigh"]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Marks that are counted together."""

    agree: int
    checked: int
    questions: int
    ratio: float
    """Agreement seen; nan where nothing was checked."""
    lower: float
    """Exact one-sided bound, as if proofs were independent. 0 where nothing was checked."""
    lower_together: float | None
    """The bound that holds for all slices at once; None for a group that is no slice."""
    clustered: Clustered | None
    """The bound that knows of questions; None where the marks are of fewer than two."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All groups, at one confidence."""

    confidence: float
    slices: Mapping[str, Group]
    pooled: Group
    """All slices together: about the mean of their agreements, weighted by the proofs checked, not by their sizes."""
    classes: Mapping[str, Group]
    """`correct` and `wrong`: the proofs with that label. Their agreement is the label's precision."""


def weigh(
    marks: Iterable[Mark],
    confidence: float = 0.90,
    *,
    sizes: Mapping[str, int] | None = None,
    pool: Collection[str] | None = None,
    method: Method = "sidak",
) -> Evidence:
    """Bounds of all groups.

    Args:
        marks: of all slices that were audited, discarded ones too: the bounds "together" count them.
        confidence: of each bound; for `lower_together`, of all slices' at once.
        sizes: labelled proofs of each slice. Then its bounds are about these proofs (no endless supply), and slices
            without marks are in the result too.
        pool: slices that `pooled` and `classes` are about, such as the accepted ones. None: all.
        method: of `lower_together`: `sidak`, or `bonferroni` where slices share questions.

    Raises:
        DataError: a proof marked twice, more marks than proofs, or an unknown slice.
    """
    known = checked_marks(marks)
    names = sorted({mark.slice for mark in known} | set(sizes or {}))
    if sizes is not None and (unknown := [name for name in names if name not in sizes]):
        raise DataError(f"the size of slice {unknown[0]!r} is not given; give it, or leave sizes out")
    if unknown := sorted(set(pool or ()) - set(names)):
        raise DataError(
            f"slice {unknown[0]!r} of the pool has no marks; slices are {', '.join(names) or 'none'}"
        )
    each = confidence_each(confidence, len(names), method)
    kept = known if pool is None else [mark for mark in known if mark.slice in pool]
    return Evidence(
        confidence=confidence,
        slices={
            name: _group(
                [mark for mark in known if mark.slice == name],
                confidence,
                each,
                sizes[name] if sizes else None,
            )
            for name in names
        },
        pooled=_group(kept, confidence),
        classes={
            name: _group([mark for mark in kept if mark.label is label], confidence)
            for name, label in (("correct", True), ("wrong", False))
        },
    )


def _group(
    marks: list[Mark], confidence: float, together: float | None = None, population: int | None = None
) -> Group:
    agree, checked = sum(mark.agrees for mark in marks), len(marks)
    questions = len({mark.question for mark in marks})
    pairs = [(mark.question, mark.agrees) for mark in marks]
    return Group(
        agree=agree,
        checked=checked,
        questions=questions,
        ratio=agree / checked if checked else float("nan"),
        lower=lower_bound(agree, checked, confidence, population=population),
        lower_together=None
        if together is None
        else lower_bound(agree, checked, together, population=population),
        clustered=clustered_lower_bound(pairs, confidence) if questions > 1 else None,
    )


@dataclass(frozen=True, kw_only=True)
class Proven:
    """An audit after the marks that there are."""

    states: Mapping[str, SliceState]
    """Of every slice, those without marks included."""
    audited: Evidence
    """Of the slices with marks: each, all pooled, and by class. `lower_together` is Bonferroni's, over these slices."""
    accepted: Evidence | None
    """The same, pooled over the accepted slices. They were chosen by these marks, so that its bounds, which do not know
    of it, are a little too high. None: no slice is accepted."""
    classes: Mapping[str, Mapping[str, Group]]
    """Of each slice with marks, `correct` and `wrong`: the proofs that the panel labelled so."""

    @property
    def discarded(self) -> list[str]:
        """The slices that failed."""
        return [name for name, state in self.states.items() if state.verdict == "discard"]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        found = self.audited.slices
        return {
            "confidence": self.audited.confidence,
            "slices": {
                name: {
                    **asdict(state),
                    "missing": state.missing,
                    "proven": _group_document(found[name]) if name in found else None,
                    "classes": {
                        label: _group_document(one) for label, one in self.classes.get(name, {}).items()
                    },
                }
                for name, state in self.states.items()
            },
            "audited": _pooled(self.audited),
            "accepted": None if self.accepted is None else _pooled(self.accepted),
        }


def prove(
    marks: Iterable[Mark],
    sizes: Mapping[str, int],
    confidence: float = 0.90,
    *,
    rounds: Rounds | None = None,
) -> Proven:
    """Decide each slice and weigh all marks.

    A slice's bounds are about the proofs that it has, so that one that was read whole has its agreement for a bound.
    Bounds of a class, and pooled ones, are as for an endless supply, which is on the safe side.

    Args:
        marks: of all slices that were audited, discarded ones too.
        sizes: labelled proofs of each slice.
        confidence: of each bound; for `lower_together`, of all slices' at once.
        rounds: None: the paper's.

    Raises:
        DataError: marks of a slice whose size is not given, more than it has proofs, or a proof marked twice.
    """
    known = checked_marks(marks)
    states = slice_states(known, sizes, rounds)
    by_slice = defaultdict[str, list[Mark]](list)
    for mark in known:
        by_slice[mark.slice].append(mark)
    read = {name: size for name, size in sizes.items() if name in by_slice}

    def weighed(pool: list[str] | None) -> Evidence:
        # Bonferroni: slices of one pilot share its questions
        return weigh(known, confidence, sizes=read, pool=pool, method="bonferroni")

    accepted = [name for name, state in states.items() if state.verdict == "accept"]
    return Proven(
        states=states,
        audited=weighed(None),
        accepted=weighed(accepted) if accepted else None,
        classes={name: weigh(own, confidence).classes for name, own in by_slice.items()},
    )


def _pooled(found: Evidence) -> dict[str, Any]:
    return {
        "pooled": _group_document(found.pooled),
        "classes": {label: _group_document(one) for label, one in found.classes.items()},
    }


def _group_document(group: Group) -> dict[str, Any]:
    return asdict(group) | {"ratio": group.ratio if group.checked else None}
