"""A human mark of one proof beside its label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pv_data.audit.counts import whole
from pv_rl.errors import DataError

__all__ = ["Mark", "checked_marks"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One proof that has a label by consensus and was read by a human. A proof without a label is none."""

    slice: str
    """Source x method x model."""
    question: str
    """Id; proofs of a question are a cluster."""
    proof: str
    """Id."""
    label: bool
    """What the judges agreed on: True for a correct proof."""
    human: bool
    """What the human says; where several do, what they settled on."""
    round: int = 1
    """In which it was read, from 1. Rounds are cumulative: a mark counts in its own and all later ones."""

    def __post_init__(self) -> None:
        for name in ("slice", "question", "proof"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"a mark's {name} is {value!r}; give its id, a text that is not empty")
        for name in ("label", "human"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise DataError(
                    f"the {name} of proof {self.proof!r} is {value!r}; give True or False, and no mark at all for a "
                    "proof on which the judges or the readers do not agree"
                )
        whole(f"round of proof {self.proof!r}", self.round, least=1)

    @property
    def agrees(self) -> bool:
        return self.label == self.human


def checked_marks(marks: Iterable[Mark]) -> list[Mark]:
    """The marks, each proof once.

    Raises:
        DataError: a proof that comes twice: it would count twice, or be two slices' at once.
    """
    seen: dict[str, Mark] = {}
    for mark in marks:
        other = seen.setdefault(mark.proof, mark)
        if other is not mark:
            raise DataError(
                f"proof {mark.proof!r} is marked twice ({other.slice!r}, human {other.human}; {mark.slice!r}, human "
                f"{mark.human}); settle it and give one mark a proof"
            )
    return list(seen.values())
