"""Cost estimate of a run (`pv-data run CONFIG --dry-run`), before anything is paid."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from pv_data.filters import CHARACTERS_PER_TOKEN
from pv_data.labels.check import check_messages
from pv_data.methods.base import Ask, Unfit
from pv_data.records import Problem
from pv_data.run.collect import check_names, collect
from pv_data.run.config import RunConfig
from pv_data.run.generate import Generating, methods
from pv_data.run.judge import Judging
from pv_data.table import read_rows
from pv_judge.answer import Messages
from pv_judge.pages.blocks import Column, Heading, Table
from pv_judge.pages.terminal import print_blocks

__all__ = ["Estimate", "estimates", "plan"]


USUAL_PROOF = 2000
"""Characters, where there is none to take the mean of."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one entry of the config asks of one model."""

    what: str
    model: str
    calls: int
    prompt_tokens: int
    """At `CHARACTERS_PER_TOKEN`."""
    expected_tokens: int
    """Of the answers, at the model's `expected_tokens`."""
    most_tokens: int | None
    """Of the answers, at `sampling.max_tokens`; None where no setting says."""
    usd: float | None
    """As expected; None for a model without a price."""
    most_usd: float | None


def estimates(folder: Path, config: RunConfig) -> list[Estimate]:
    """From the problems and proofs that a folder has collected, with the prompts that would be sent.

    A generated proof is taken to be as long as the mean of those that are there. Answers that are kept already, and
    retries, are not counted.
    """
    problems = {problem.id: problem for problem in read_rows(folder / "problems", Problem)}
    found, made = _generation(Generating(run=folder, config=config), problems)
    judging = Judging(run=folder, config=config)
    calls, characters, texts = 0, 0, 0
    for chunk in judging.chunks():
        for proof in judging.proofs(chunk):
            calls += 1
            texts += len(proof.text)
            characters += _length(check_messages(problems[proof.problem_id].text, proof.text))
    empty = _length(check_messages("", ""))
    mean_problem = sum(len(one.text) for one in problems.values()) // max(1, len(problems))
    characters += made * (empty + mean_problem + (texts // calls if calls else USUAL_PROOF))
    for seat in config.panel:
        votes = seat.votes
        found.append(_estimate("judge", config, seat.model, votes * (calls + made), votes * characters))
    return found


def _generation(job: Generating, problems: Mapping[str, Problem]) -> tuple[list[Estimate], int]:
    """What is asked of each entry's model, and how many of the proofs are to be judged."""
    config, ready = job.config, methods(job.config)
    calls, characters = [0] * len(ready), [0] * len(ready)
    for chunk in job.chunks():
        spec, method = config.generate[chunk.spec], ready[chunk.spec]
        for row in job.inputs(chunk):
            try:
                task = job.task(spec, method, row, problems, 0)
            except Unfit:
                continue
            calls[chunk.spec] += spec.samples
            if isinstance(task, Ask):
                characters[chunk.spec] += spec.samples * _length(task.messages)
    names = [spec.name or spec.method for spec in config.generate]
    wanted = config.labels.of
    judged = [
        name in wanted if wanted else bool(one.template) for name, one in zip(names, ready, strict=True)
    ]
    found = [
        _estimate(names[n], config, config.generate[n].model, calls[n], characters[n])
        for n, method in enumerate(ready)
        if method.template
    ]
    return found, sum(number for number, is_judged in zip(calls, judged, strict=True) if is_judged)


def plan(config: RunConfig, console: Console) -> None:
    """Print the estimates, and what a budget says to them. Sources are read into a folder that goes away.

    Raises:
        ConfigError: a name that nothing has, as `run` would say.
        DataError: a source that is not what its kind says.
    """
    with tempfile.TemporaryDirectory(prefix="pv-data-plan-") as folder:
        collect(Path(folder), config, Console(stderr=True))
        check_names(Path(folder), config)
        found = estimates(Path(folder), config)
    usd = [one.usd for one in found]
    total = sum(usd for usd in usd if usd is not None)
    columns: list[Column[Estimate]] = [
        Column("what", lambda one: one.what, left=True, wrap=True),
        Column("model", lambda one: one.model, left=True, wrap=True),
        Column("calls", lambda one: f"{one.calls:,}"),
        Column("tokens in", lambda one: _short(one.prompt_tokens)),
        Column("out", lambda one: _short(one.expected_tokens)),
        Column("USD", lambda one: _dollars(one.usd)),
        Column("at most", lambda one: _dollars(one.most_usd)),
    ]
    table = Table.of(columns, found, tones={len(found): "strong"})
    everything = ["all", "", f"{sum(one.calls for one in found):,}", "", "", _dollars(total), ""]
    title = Heading("What the run would ask", level=1)
    print_blocks([title, replace(table, rows=[*table.rows, everything])], console)
    if any(config.models[one.model].local is not None for one in found):
        console.print("Local models cost no dollars; what runs them is not counted.")
    if None in usd:
        console.print("Some models have no price: the sum leaves them out.")
    if config.budget_usd is not None and total > config.budget_usd:
        console.print(f"The budget, ${config.budget_usd:.2f}, would end the run before it is done.")


def _estimate(what: str, config: RunConfig, name: str, calls: int, characters: int) -> Estimate:
    model = config.models[name]
    prompt = int(characters / CHARACTERS_PER_TOKEN)
    most = None if model.most_tokens is None else calls * model.most_tokens
    expected = calls * model.expected_tokens
    expected = expected if most is None else min(expected, most)
    price = model.prices.get(model.model)

    def usd(tokens: int | None) -> float | None:
        if model.local is not None:
            return 0.0
        if price is None or tokens is None:
            return None
        return (prompt * price.input + tokens * price.output) / 1e6

    return Estimate(
        what=what,
        model=name,
        calls=calls,
        prompt_tokens=prompt,
        expected_tokens=expected,
        most_tokens=most,
        usd=usd(expected),
        most_usd=usd(most),
    )


def _length(messages: Messages) -> int:
    return sum(len(message["content"]) for message in messages)


def _short(tokens: int | None) -> str:
    """`4.90M` for 4,899,123."""
    if tokens is None:
        return "?"
    return f"{tokens / 1e6:.2f}M" if tokens >= 100_000 else f"{tokens:,}"


def _dollars(usd: float | None) -> str:
    return "?" if usd is None else f"{usd:,.2f}"
