"""Stage `judge`: the panel's votes on each proof, and the label that they make."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from pv_data.asking.kept_answers import Question
from pv_data.asking.refused import REFUSED, reason_of
from pv_data.labels.check import CHECK_TEMPLATE, check_messages, parse_check
from pv_data.labels.rule import decide, rule_text
from pv_data.records import Aside, Judgment, Label, Problem, Proof
from pv_data.run.config import Seat
from pv_data.run.stage import Asked, Chunk, Job, Resources, Tables, chunks_of, problem_of, read_problems
from pv_data.run.worker import gather_all, root_cause
from pv_data.table import read_group
from pv_judge.answer import JudgeFailure
from pv_judge.pages.text import plural

__all__ = ["Judging"]


BY_CONSTRUCTION = "construction"
"""How `known_by` begins where a proof was made wrong: nobody need be paid to say so."""


@dataclass(frozen=True, kw_only=True)
class Judging(Job):
    """See the module."""

    stage = "judge"
    tables = MappingProxyType({"judgments": Judgment, "aside": Aside, "labels": Label})

    @property
    def asks_a_row(self) -> list[tuple[str, int]]:
        """The panel's votes."""
        return [(seat.model, seat.votes) for seat in self.config.panel]

    def chunks(self) -> Iterator[Chunk]:
        """All row groups of the proofs that came with the problems and of those that were generated."""
        yield from chunks_of(self.run / "proofs", Proof)
        yield from chunks_of(self.run / "generated", Proof, spec=1)

    def questions(self, chunk: Chunk) -> int:
        """The panel's votes on each of its proofs."""
        return len(self.proofs(chunk)) * sum(seat.votes for seat in self.config.panel)

    def proofs(self, chunk: Chunk) -> list[Proof]:
        """Those of the chunk that are judged."""
        wanted = self.config.labels.of
        return [
            proof
            for proof in read_group(chunk.part, Proof, chunk.group)
            if (proof.method in wanted if wanted else not proof.known_by.startswith(BY_CONSTRUCTION))
        ]

    def votes(self) -> list[tuple[Seat, int]]:
        """Of a proof: who is asked, and for which time."""
        return [(seat, number) for seat in self.config.panel for number in range(seat.votes)]

    def asks(self) -> Callable[[Chunk], Iterator[Asked]]:
        """See `Job.asks`."""
        problems = read_problems(self.run)

        def of(chunk: Chunk) -> Iterator[Asked]:
            for proof in self.proofs(chunk):
                question = _question(problem_of(problems, proof), proof)
                for seat, number in self.votes():
                    yield Asked(model=seat.model, question=question, sample=number)

        return of

    def work(self, resources: Resources) -> Callable[[Chunk], Awaitable[Tables]]:
        """See `Job.work`."""
        return JudgingWork(self, resources).do


class JudgingWork:
    """Judges chunks in one process."""

    def __init__(self, job: Judging, resources: Resources) -> None:
        self._job, self._resources = job, resources
        self._votes = job.votes()

    async def do(self, chunk: Chunk) -> Tables:
        """Judge the proofs of a chunk. A proof that lacks a vote is rejected; its other judgments are kept."""
        judged = await gather_all(self._judge(proof) for proof in self._job.proofs(chunk))
        return {
            "judgments": [one for judgments, _ in judged for one in judgments],
            "aside": [end for _, end in judged if isinstance(end, Aside)],
            "labels": [end for _, end in judged if isinstance(end, Label)],
        }

    async def _judge(self, proof: Proof) -> tuple[list[Judgment], Label | Aside]:
        question = _question(self._resources.problem_of(proof), proof)
        asked = await asyncio.gather(
            *(self._vote(proof, question, seat, number) for seat, number in self._votes),
            return_exceptions=True,
        )
        failures = [one for one in asked if isinstance(one, JudgeFailure)]
        others = [one for one in asked if isinstance(one, BaseException) and one not in failures]
        if error := root_cause(others):  # the end of the run, or a bug
            raise error
        judgments = [one for one in asked if isinstance(one, Judgment)]
        if failures:
            return judgments, _without_label(proof, failures, len(self._votes))
        labels = self._job.config.labels
        votes = tuple(one.verdict for one in judgments)
        return judgments, Label(
            proof_id=proof.id,
            problem_id=proof.problem_id,
            slice=proof.slice,
            value=decide(votes, [seat.weight for seat, _ in self._votes], labels),
            rule=rule_text(len(votes), labels),
            votes=votes,
            judges=tuple(one.judge for one in judgments),
            known=proof.known,
        )

    async def _vote(self, proof: Proof, question: Question, seat: Seat, number: int) -> Judgment:
        replied = await self._resources.askers[seat.model].ask(question, parse_check, sample=number)
        check = replied.value
        return Judgment(
            proof_id=proof.id,
            judge=seat.model,
            conditions=check.conditions,
            stated=check.stated,
            verdict=check.verdict,
            text=replied.text,
            origin=replied.origin,
        )


def _question(problem: Problem, proof: Proof) -> Question:
    return Question(template=CHECK_TEMPLATE, messages=check_messages(problem.text, proof.text))


def _without_label(proof: Proof, failures: list[JudgeFailure], votes: int) -> Aside:
    # A vote that is refused for good comes first: asking for the others again would not give the proof its label.
    first = min(failures, key=lambda one: not reason_of(one).startswith(REFUSED))
    return Aside(
        stage="judge",
        row=proof.id,
        reason=reason_of(first),
        detail=f"{len(failures)} of {plural(votes, 'vote')} are missing; one of them: {first}",
        content=proof.text[:2000],
    )
