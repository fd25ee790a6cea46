"""Reading list of an audit: which proofs people read next, blind or as a third reader, with the texts that they see.

A sheet and the tasks of Label Studio are both written from it. It has neither the panel's label nor the slice: a reader
who knows how a proof was made, or what judges think of it, reads differently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pv_data.audit import Drawn, Rounds, draw, read_audit, slice_states
from pv_data.audit.marks import in_dispute, latest_marks
from pv_data.records import AuditMark, Label, Problem, Proof, content_id
from pv_data.table import read_rows
from pv_rl.errors import DataError

__all__ = [
    "ANSWERS",
    "MARKS",
    "ToRead",
    "agreed_labels",
    "all_marks",
    "check_name",
    "reading_list",
    "time_after",
]

MARKS = "marks"
ANSWERS: Mapping[bool | None, str] = {True: "correct", False: "incorrect", None: "cannot tell"}


@dataclass(frozen=True, kw_only=True)
class ToRead:
    """One proof to read."""

    proof_id: str
    round: int
    problem: str
    proof: str
    earlier: tuple[AuditMark, ...] = ()
    """What a third reader sees, in an order that does not say whose each is. None for those who read blind."""


def reading_list(
    run: Path,
    *,
    third: bool = False,
    pilot: float = 0.05,
    seed: int = 0,
    rounds: Rounds | None = None,
) -> tuple[Drawn, list[ToRead]]:
    """The proofs to read next, in an order that says nothing about their slices.

    Blind: the current round of each open slice. Proofs on which readers differ wait for a third reader, and proofs that
    no further reader could settle are replaced by the next of the sample.

    Args:
        run: the run's folder.
        third: the proofs on which two readers differ, with their reasons, for a third person.
        pilot: part of each source's questions, from which all slices' proofs are drawn; 1: of all.
        seed: of the pilot and of the sample; the same for all rounds of a run, each of which contains the one before.
        rounds: None: the paper's.

    Raises:
        DataError: the run has no labels.
        ConfigError: no such part.
    """
    audit, labels, marks = read_audit(run), agreed_labels(run), all_marks(run)
    problems = {problem.id: problem for problem in read_rows(run / "problems", Problem)}
    read = {proof: of_proof for proof, of_proof in latest_marks(marks).items() if proof in labels}
    disputes = {proof: in_dispute(of_proof) for proof, of_proof in read.items()}
    waiting = {proof for proof, open_ in disputes.items() if open_}
    of_slice = defaultdict[str, dict[str, str]](dict)
    for one in labels.values():
        of_slice[one.slice][one.proof_id] = one.problem_id
    drawn = draw(
        slice_states(audit.marks.values(), audit.sizes, rounds).values(),
        of_slice,
        audit.marks.keys() | {proof for proof, open_ in disputes.items() if open_ is None},
        _questions(problems.values(), labels.values()),
        touched=problems.keys() & {mark.problem_id for mark in marks},
        pilot=pilot,
        seed=seed,
    )
    if third:
        wanted = {proof: min(mark.round for mark in read[proof]) for proof in waiting}
        drawn = replace(drawn, proofs=wanted, short=())
    else:
        wanted = {proof: number for proof, number in drawn.proofs.items() if proof not in waiting}
        again = tuple(proof for proof in wanted if proof in read)
        drawn = replace(drawn, proofs=wanted, disputed=len(waiting), again=again)
    found = []
    for proof in read_rows([run / "proofs", run / "generated"], Proof):
        if proof.id in wanted:
            problem = problems.get(proof.problem_id)
            found.append(
                ToRead(
                    proof_id=proof.id,
                    round=wanted[proof.id],
                    problem=problem.text if problem else "(gone)",
                    proof=proof.text,
                    earlier=_shuffled(read[proof.id], seed) if third else (),
                )
            )
    return drawn, sorted(found, key=lambda one: content_id("sheet", seed, one.proof_id))


def _shuffled(marks: Iterable[AuditMark], seed: int) -> tuple[AuditMark, ...]:
    return tuple(sorted(marks, key=lambda mark: content_id("earlier", seed, mark.proof_id, mark.auditor)))


def all_marks(run: Path) -> list[AuditMark]:
    """Every mark that was recorded, also those that later ones replace."""
    return list(read_rows(run / MARKS, AuditMark))


def agreed_labels(run: Path) -> dict[str, Label]:
    """Those on which the judges agree, by proof id."""
    return {one.proof_id: one for one in read_rows(run / "labels", Label) if one.value is not None}


def check_name(name: str, others: Iterable[str]) -> None:
    """Check that a reader's name is not that of another reader but for case and spaces: one person would be two.

    Raises:
        DataError: there is such a name.
    """
    alike = sorted(one for one in set(others) - {name} if _folded(one) == _folded(name))
    if alike:
        raise DataError(
            f"--auditor {name!r} differs from the auditor {alike[0]!r} only in case or spaces, and would count as a "
            "second reader. Give the same name again, or one that differs by a letter"
        )


def _folded(name: str) -> str:
    return "".join(name.casefold().split())


def time_after(times: Iterable[str]) -> str:
    """The time, or a moment after the last of `times` where the clock went back: the later word counts."""
    last, now = max(times, default=""), datetime.now(UTC)
    if last and now <= (before := datetime.fromisoformat(last)):
        now = before + timedelta(microseconds=1)
    return now.isoformat()


def _questions(problems: Iterable[Problem], labels: Iterable[Label]) -> dict[str, set[str]]:
    """Ids by source; a problem that is gone is one of the source of its proofs."""
    found, known = defaultdict[str, set[str]](set), set[str]()
    for problem in problems:
        found[problem.source].add(problem.id)
        known.add(problem.id)
    for label in labels:
        if label.problem_id not in known:
            found[label.slice.partition("/")[0]].add(label.problem_id)
    return found
