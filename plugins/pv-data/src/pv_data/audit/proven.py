"""All that an audit proves, slice by slice and together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pv_data.audit.decisions import SliceState, slice_states
from pv_data.audit.evidence import Evidence, Group, weigh
from pv_data.audit.marks import Mark, checked_marks
from pv_data.audit.rounds import Rounds

__all__ = ["Proven", "prove"]


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
                    "proven": _document(found[name]) if name in found else None,
                    "classes": {label: _document(one) for label, one in self.classes.get(name, {}).items()},
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
        "pooled": _document(found.pooled),
        "classes": {label: _document(one) for label, one in found.classes.items()},
    }


def _document(group: Group) -> dict[str, Any]:
    return asdict(group) | {"ratio": group.ratio if group.checked else None}
