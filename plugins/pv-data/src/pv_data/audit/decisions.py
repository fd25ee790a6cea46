"""Where each slice stands: accepted, discarded, or how many proofs are still to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pv_data.audit.counts import whole
from pv_data.audit.marks import Mark, checked_marks
from pv_data.audit.rounds import Rounds
from pv_rl.errors import DataError

__all__ = ["SliceState", "Verdict", "decide", "slice_states"]

Verdict = Literal["accept", "discard", "open"]


@dataclass(frozen=True, kw_only=True)
class SliceState:
    """A slice after the marks that there are."""

    slice: str
    size: int
    """Labelled proofs of the slice."""
    verdict: Verdict
    round: int
    """The one that decided, or that is to be read; from 1."""
    agree: int
    """Of `checked`, those where human and label agree."""
    checked: int
    """Marks of the rounds up to this one."""
    due: int
    """Proofs read by the end of this round."""
    gate: float
    """Agreement that this round needs."""

    @property
    def missing(self) -> int:
        """Proofs still to be read in this round."""
        return max(0, self.due - self.checked) if self.verdict == "open" else 0


def decide(slice: str, marks: Iterable[Mark], size: int, rounds: Rounds | None = None) -> SliceState:
    """Go through the rounds in order; the first that fails discards, and the last that passes accepts.

    A round is judged by all marks up to it, also where these are more than are due. Marks of later rounds cannot mend
    a failed one.

    Args:
        slice: its name.
        marks: of this slice; those of others are left out.
        size: labelled proofs of the slice.
        rounds: None: the paper's.

    Raises:
        DataError: more marks than proofs, or a proof marked twice.
    """
    size = whole(f"size of slice {slice!r}", size, least=1)
    own = [mark for mark in checked_marks(marks) if mark.slice == slice]
    if len(own) > size:
        raise DataError(
            f"slice {slice!r} has {len(own)} marks and {size} proofs; give the number of labelled proofs"
        )
    plan = (rounds or Rounds()).of(size)
    verdict: Verdict = "open"
    for one in plan:
        counted = [mark for mark in own if mark.round <= one.number]
        agree, checked = sum(mark.agrees for mark in counted), len(counted)
        if checked < one.checked:
            verdict = "open"
        elif not one.passes(agree, checked):
            verdict = "discard"
        elif one is plan[-1]:
            verdict = "accept"
        else:
            continue
        return SliceState(
            slice=slice,
            size=size,
            verdict=verdict,
            round=one.number,
            agree=agree,
            checked=checked,
            due=one.checked,
            gate=one.gate,
        )
    raise AssertionError("the last round returns")  # Rounds has at least one


def slice_states(
    marks: Iterable[Mark], sizes: Mapping[str, int], rounds: Rounds | None = None
) -> dict[str, SliceState]:
    """The state of every slice in `sizes`, those without marks included.

    Raises:
        DataError: marks of a slice whose size is not given.
    """
    all_marks = checked_marks(marks)
    by_slice: dict[str, list[Mark]] = {name: [] for name in sizes}
    for mark in all_marks:
        if mark.slice not in by_slice:
            raise DataError(
                f"proof {mark.proof!r} is of slice {mark.slice!r}, whose size is not given; sizes are known of "
                f"{', '.join(sorted(sizes)) or 'no slice'}"
            )
        by_slice[mark.slice].append(mark)
    return {name: decide(name, by_slice[name], size, rounds) for name, size in sizes.items()}
