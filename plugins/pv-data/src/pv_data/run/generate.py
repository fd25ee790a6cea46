"""Stage `generate`: makes new proofs from problems and proofs, by the methods and models of the config."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from pv_data.asking.kept_answers import Question
from pv_data.asking.refused import reason_of
from pv_data.ids import PILOT, place
from pv_data.methods.base import Ask, Given, Made, Method, Unfit
from pv_data.plugins import METHODS
from pv_data.records import Aside, Origin, Problem, Proof, content_id
from pv_data.run.config import Generate, RunConfig
from pv_data.run.stage import Asked, Chunk, Job, Resources, Tables, chunks_of, read_problems
from pv_data.run.worker import gather_all
from pv_data.table import read_group
from pv_judge.answer import JudgeFailure
from pv_rl.errors import ConfigError, PluginError
from pv_rl.plugins import misfit

__all__ = ["Generating", "methods"]


PROOFS = "proofs"
"""The folder of the proofs that a method works on."""


def methods(config: RunConfig) -> list[Method]:
    """The method of each entry of `generate`.

    Raises:
        ConfigError: a method that does not exist, an option that it does not know, a model that it lacks.
        PluginError: what a plugin builds is no method.
    """
    found = []
    for number, spec in enumerate(config.generate):
        where = f"generate[{number}]"
        try:
            build = METHODS.named(spec.method).build
            method = build(**spec.options)
        except TypeError as error:
            why = misfit(build, spec.options, error)
            raise ConfigError(f"{where}.options of {spec.method}: {why}") from None
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        if lacks := [one for one in ("needs_proof", "template", "prepare") if not hasattr(method, one)]:
            raise PluginError(
                f"the method {spec.method} of {METHODS.owner(spec.method)} lacks {', '.join(lacks)}; its `build` "
                "has to return a pv_data.methods.base.Method"
            )
        if bool(method.template) != bool(spec.model):
            needs = "asks a model: name one" if method.template else "asks no model: name none"
            raise ConfigError(f"{where}.model: the method {spec.method} {needs}")
        found.append(method)
    return found


@dataclass(frozen=True, kw_only=True)
class Generating(Job):
    """See the module. The `spec` of a chunk is the number of its entry of `generate`."""

    stage = "generate"
    tables = MappingProxyType({"aside": Aside, "generated": Proof})

    @property
    def asks_a_row(self) -> list[tuple[str, int]]:
        """One question for each sample."""
        return [(spec.model, spec.samples) for spec in self.config.generate if spec.model]

    def chunks(self) -> Iterator[Chunk]:
        """For each entry of `generate`, the row groups of what its method works on."""
        for number, method in enumerate(methods(self.config)):
            if method.needs_proof:
                yield from chunks_of(self.run / PROOFS, Proof, spec=number)
            else:
                yield from chunks_of(self.run / "problems", Problem, spec=number)

    def questions(self, chunk: Chunk) -> int:
        """One for each input and sample, or none."""
        spec = self.config.generate[chunk.spec]
        return sum(1 for _ in self.inputs(chunk)) * spec.samples if spec.model else 0

    def inputs(self, chunk: Chunk) -> Iterator[Problem | Proof]:
        """The rows of a chunk that the entry is about."""
        spec = self.config.generate[chunk.spec]
        kind = Proof if chunk.part.parent.name == PROOFS else Problem
        rows: Sequence[Any] = read_group(chunk.part, kind, chunk.group)
        for row in rows:
            question = row.problem_id if isinstance(row, Proof) else row.id
            if spec.sources and row.source not in spec.sources:
                continue
            if isinstance(row, Proof) and row.method not in spec.of:
                continue
            if place(PILOT, self.config.seed, question) < spec.share:
                yield row

    def task(
        self,
        spec: Generate,
        method: Method,
        row: Problem | Proof,
        problems: Mapping[str, Problem],
        sample: int,
    ) -> Ask | Made:
        """What is to be done for one input and sample; raises `Unfit`."""
        seed = int(content_id("seed", self.config.seed, spec.method, row.id, sample), 16) % 2**63
        if isinstance(row, Proof):
            given = Given(problem=problems[row.problem_id], proof=row, sample=sample, seed=seed)
        else:
            given = Given(problem=row, proof=None, sample=sample, seed=seed)
        return method.prepare(given)

    def asks(self) -> Callable[[Chunk], Iterator[Asked]]:
        """See `Job.asks`."""
        ready = methods(self.config)
        problems = read_problems(self.run)

        def of(chunk: Chunk) -> Iterator[Asked]:
            spec, method = self.config.generate[chunk.spec], ready[chunk.spec]
            for row in self.inputs(chunk) if spec.model else ():
                for sample in range(spec.samples):
                    with contextlib.suppress(Unfit):
                        task = self.task(spec, method, row, problems, sample)
                        if isinstance(task, Ask):
                            question = Question(template=method.template, messages=task.messages)
                            yield Asked(model=spec.model, question=question, sample=sample)

        return of

    def work(self, resources: Resources) -> Callable[[Chunk], Awaitable[Tables]]:
        """See `Job.work`."""
        return GeneratingWork(self, resources).do


class GeneratingWork:
    """Generates the proofs of chunks in one process."""

    def __init__(self, job: Generating, resources: Resources) -> None:
        self._job, self._resources = job, resources
        self._methods = methods(job.config)

    async def do(self, chunk: Chunk) -> Tables:
        """Rejects a proof that could not be made, or that repeats an earlier one of the chunk."""
        spec, method = self._job.config.generate[chunk.spec], self._methods[chunk.spec]
        made = await gather_all(
            self._one(spec, method, row, sample)
            for row in self._job.inputs(chunk)
            for sample in range(spec.samples)
        )
        proofs: dict[str, Proof] = {}
        aside: list[Aside] = []
        for one in made:
            if isinstance(one, Aside):
                aside.append(one)
            elif isinstance(one, Proof) and proofs.setdefault(one.id, one) is not one:
                aside.append(_aside(one.id, f"twice, sample {one.origin.sample}", "", one.text))
        return {"aside": aside, "generated": list(proofs.values())}

    async def _one(self, spec: Generate, method: Method, row: Problem | Proof, sample: int) -> Proof | Aside:
        where = f"{spec.method}/{spec.model or '-'} of {row.id}, sample {sample}"
        try:
            task = self._job.task(spec, method, row, self._resources.problems, sample)
        except Unfit as unfit:
            return _aside(where, unfit.reason, unfit.detail, row.text)
        new = partial(
            Proof,
            problem_id=row.problem_id if isinstance(row, Proof) else row.id,
            source=row.source,
            method=spec.name or spec.method,
            parent_id=row.id if isinstance(row, Proof) else "",
        )
        if isinstance(task, Made):
            return new(text=task.text, known=task.known, known_by=task.known_by, origin=Origin(sample=sample))
        return await self._asked(spec, method, task, sample, new, where)

    async def _asked(
        self, spec: Generate, method: Method, task: Ask, sample: int, new: Any, where: str
    ) -> Proof | Aside:
        asker = self._resources.askers[spec.model]
        try:
            question = Question(template=method.template, messages=task.messages)
            # The text is read once it is kept: asking again would not mend one that is unfit.
            replied = await asker.ask(question, None, sample=sample)
        except JudgeFailure as failure:
            return _aside(where, reason_of(failure), str(failure), failure.text)
        try:
            text = task.read(replied.text)
        except Unfit as unfit:
            return _aside(where, unfit.reason, unfit.detail, replied.text)
        return new(model=spec.model, text=text, origin=replied.origin)


def _aside(row: str, reason: str, detail: str, content: str) -> Aside:
    return Aside(stage="generate", row=row, reason=reason, detail=detail, content=content[:2000])
