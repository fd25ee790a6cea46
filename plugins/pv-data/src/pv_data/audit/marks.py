"""Audit marks: what people found of single proofs, and the verdict on each slice that follows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pv_data.audit.counts import whole
from pv_data.audit.plan import Rounds
from pv_data.records import AuditMark, Label
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = [
    "Mark",
    "Recorded",
    "SliceState",
    "Verdict",
    "checked_marks",
    "decide",
    "in_dispute",
    "latest_marks",
    "majority",
    "read_audit",
    "recorded",
    "slice_states",
]


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


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What `decide`, `weigh` and `prove` need."""

    marks: Mapping[str, Mark]
    """By proof id."""
    sizes: Mapping[str, int]
    """Labelled proofs of each slice, also of those that nobody read; without those that no reader could settle."""


def read_audit(run: Path) -> Recorded:
    """The audit of a run of `pv-data run`, from its tables `marks` and `labels`.

    Raises:
        DataError: the run has no labels of a panel.
    """
    from pv_data.table import read_rows

    found = recorded(read_rows(run / "marks", AuditMark), read_rows(run / "labels", Label))
    if not found.sizes:
        if not run.is_dir():
            raise DataError(f"{run} is not a folder. Give the run_dir of a pv-data run")
        raise DataError(
            f"{run} has no labels of a panel to audit. Set `panel` in its config, and finish `pv-data run`"
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


def majority(marks: Collection[AuditMark]) -> bool | None:
    """What more than half of a proof's readers say; None where they are split, or too many cannot tell.

    Example: right, wrong and right is True; right and cannot tell is None.
    """
    right, wrong = (sum(one.human is said for one in marks) for said in (True, False))
    return True if 2 * right > len(marks) else False if 2 * wrong > len(marks) else None


def in_dispute(marks: Collection[AuditMark]) -> bool | None:
    """Whether two or more readers have not settled a proof and one more could; None where one more could not.

    Example: right and wrong, or right and cannot tell: True. Twice cannot tell, or all three answers once: None.
    """
    if len(marks) < 2 or majority(marks) is not None:
        return False
    most = max(sum(one.human is said for one in marks) for said in (True, False))
    return True if 2 * (most + 1) > len(marks) + 1 else None


def recorded(marks: Iterable[AuditMark], labels: Iterable[Label]) -> Recorded:
    """One mark a proof: by majority of those who read it, each one's latest word, as the export counts it.

    It is held against the label that the proof has now. A proof without one, and one that its readers did not settle
    (`majority`), is left out; one that a further reader could not settle is not counted as a proof of its slice either,
    or a slice that is read whole would stay open.

    Args:
        marks: as recorded, in the order of the table.
        labels: of the panel; they are read once, and only those of marked proofs are held.
    """
    read = latest_marks(marks)
    slices: dict[str, str] = {}
    held: dict[str, Label] = {}
    for label in labels:
        if label.value is not None:
            slices[label.proof_id] = label.slice
            if label.proof_id in read:
                held[label.proof_id] = label
    found = {}
    for proof, of_proof in read.items():
        human, label = majority(of_proof), held.get(proof)
        if label is not None and human is not None:
            found[proof] = Mark(
                slice=label.slice,
                question=label.problem_id,
                proof=proof,
                label=bool(label.value),
                human=human,
                round=min(one.round for one in of_proof),
            )
    sizes = Counter(name for proof, name in slices.items() if in_dispute(read.get(proof, ())) is not None)
    return Recorded(marks=found, sizes=sizes)


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
            f"slice {slice!r} has {plural(len(own), 'mark')} and {plural(size, 'proof')}; give the number "
            "of labelled proofs"
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
