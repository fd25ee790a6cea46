"""The stage `generate`: new proofs from problems and proofs, by the methods and models of the config."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pv_data.asking.kept_answers import Question
from pv_data.asking.settings import Model
from pv_data.methods.base import Ask, Given, Made, Method, Unfit
from pv_data.order import PILOT, place
from pv_data.plugins import METHODS, named
from pv_data.records import Aside, Origin, Problem, Proof, Row, content_id
from pv_data.run.chunk import ROWS, Asked, Chunk, Done, chunks_of, lanes
from pv_data.run.config import Generate, RunConfig
from pv_data.run.opening import Opened, opened
from pv_data.run.together import together
from pv_data.table import read_group, read_rows
from pv_judge.answer import JudgeFailure
from pv_rl.errors import ConfigError

__all__ = ["Generating", "methods"]

PROOFS = "proofs"
"""The folder of the proofs that a method works on."""


def methods(config: RunConfig) -> list[Method]:
    """The method of each entry of `generate`.

    Raises:
        ConfigError: a method that does not exist, an option that it does not know, a model that it lacks.
    """
    found = []
    for number, spec in enumerate(config.generate):
        where = f"generate[{number}]"
        try:
            method = named(METHODS, spec.method).build(**spec.options)
        except TypeError as error:
            raise ConfigError(f"{where}.options: {spec.method} does not take them ({error})") from None
        if bool(method.template) != bool(spec.model):
            needs = "asks a model: name one" if method.template else "asks no model: name none"
            raise ConfigError(f"{where}.model: the method {spec.method} {needs}")
        found.append(method)
    return found


@dataclass(frozen=True, kw_only=True)
class Generating:
    """See the module; a `pv_data.run.chunk.Job`. The number of a chunk's `spec` is that of the entry of `generate`."""

    run: Path
    config: RunConfig
    stage: str = "generate"
    tables: Mapping[str, type[Row]] = field(default_factory=lambda: {"aside": Aside, "generated": Proof})
    served: Mapping[str, Model] = field(default_factory=dict)
    parse: Callable[[str], Any] | None = None
    """A text is read after it was kept: what is unfit then is no fault that asking again would mend."""

    @property
    def models(self) -> set[str]:
        """Of all entries."""
        return self.config.writers

    def chunks(self) -> Iterator[Chunk]:
        """For each entry of `generate`, the row groups of what its method works on."""
        for number, method in enumerate(methods(self.config)):
            if method.needs_proof:
                yield from chunks_of(self.run / PROOFS, Proof, spec=number)
            else:
                yield from chunks_of(self.run / "problems", Problem, spec=number)

    def at_once(self, of: int) -> int:
        """By the model that has the most places for each sample."""
        models = self.config.models
        return max(
            (
                lanes(models[spec.model].limits.concurrency // of, ROWS * spec.samples)
                for spec in self.config.generate
                if spec.model
            ),
            default=1,
        )

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
        problems = {problem.id: problem for problem in read_rows(self.run / "problems", Problem)}

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

    def with_served(self, served: Mapping[str, Model]) -> Generating:
        """See `Job.with_served`."""
        return replace(self, served=served)

    @contextlib.asynccontextmanager
    async def opened(self, part: int, of: int, money: float) -> AsyncIterator[GeneratingWork]:
        """With the models of all entries."""
        async with opened(self.run, self.config, self.models, self.served, part, of, money) as found:
            yield GeneratingWork(self, found)


class GeneratingWork:
    """Generates the proofs of chunks in one process."""

    def __init__(self, job: Generating, opened: Opened) -> None:
        self._job, self._opened = job, opened
        self._methods = methods(job.config)

    def stop(self, why: str) -> None:
        """Send nothing any more."""
        self._opened.stop(why)

    async def do(self, chunk: Chunk) -> Done:
        """Proofs that say the same as one before them in the chunk are set aside, and so is what could not be made."""
        spec, method = self._job.config.generate[chunk.spec], self._methods[chunk.spec]
        made = await together(
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
        return Done(tables={"aside": aside, "generated": list(proofs.values())})

    async def _one(self, spec: Generate, method: Method, row: Problem | Proof, sample: int) -> Proof | Aside:
        where = f"{spec.method}/{spec.model or '-'} of {row.id}, sample {sample}"
        try:
            task = self._job.task(spec, method, row, self._opened.problems, sample)
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
        asker = self._opened.askers[spec.model]
        try:
            question = Question(template=method.template, messages=task.messages)
            replied = await asker.ask(question, self._job.parse, sample=sample)
        except JudgeFailure as failure:
            return _aside(where, f"no answer: {failure.kind}", str(failure), failure.text)
        try:
            text = task.read(replied.text)
        except Unfit as unfit:
            return _aside(where, unfit.reason, unfit.detail, replied.text)
        return new(model=spec.model, text=text, origin=replied.origin)


def _aside(row: str, reason: str, detail: str, content: str) -> Aside:
    return Aside(stage="generate", row=row, reason=reason, detail=detail, content=content[:2000])
