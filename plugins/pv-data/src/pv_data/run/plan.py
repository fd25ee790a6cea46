"""`pv-data run CONFIG --dry-run`: what a run would ask, and what that would cost, before anything is paid."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pv_data.labels.prompt import check_messages
from pv_data.records import Problem, Proof
from pv_data.run.collecting import collect
from pv_data.run.config import RunConfig
from pv_data.run.generating import Generating, methods
from pv_data.table import read_rows
from pv_rl.judge.completion import estimate_tokens

__all__ = ["Estimate", "estimates", "plan"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one entry of the config asks of one model."""

    what: str
    model: str
    calls: int
    prompt_tokens: int
    """At four characters a token."""
    expected_tokens: int
    """Of the answers, at the model's `expected_tokens`."""
    most_tokens: int | None
    """Of the answers, at `sampling.max_tokens`; None where no setting says."""
    usd: float | None
    """As expected; None for a model without a price."""
    most_usd: float | None


def estimates(folder: Path, config: RunConfig) -> list[Estimate]:
    """From the problems and proofs that a folder has collected. A generated proof is taken to be of mean length."""
    problems = {problem.id: problem for problem in read_rows(folder / "problems", Problem)}
    proofs = list(read_rows(folder / "proofs", Proof))
    mean = sum(len(proof.text) for proof in proofs) // max(1, len(proofs)) or 2000
    found = []
    job = Generating(run=folder, config=config)
    made: list[int] = [0] * len(config.generate)
    characters = list(made)
    for chunk in job.chunks():
        spec = config.generate[chunk.spec]
        for row in job.inputs(chunk):
            made[chunk.spec] += spec.samples
            length = len(row.text) + (len(problems[row.problem_id].text) if isinstance(row, Proof) else 0)
            characters[chunk.spec] += spec.samples * length
    for number, (spec, method) in enumerate(zip(config.generate, methods(config), strict=True)):
        if method.template:
            found.append(
                _estimate(f"generate {spec.method}", config, spec.model, made[number], characters[number])
            )
    wanted = config.labels.of
    judged = [one for one in proofs if (one.method in wanted if wanted else True)]
    generated = sum(
        count
        for count, spec, method in zip(made, config.generate, methods(config), strict=True)
        if ((spec.name or spec.method) in wanted if wanted else method.template)
    )
    empty = sum(len(message["content"]) for message in check_messages("", ""))
    length = sum(len(one.text) + len(problems[one.problem_id].text) for one in judged)
    length += generated * (mean + sum(len(one.text) for one in problems.values()) // max(1, len(problems)))
    length += empty * (len(judged) + generated)
    for seat in config.panel:
        calls = seat.votes * (len(judged) + generated)
        found.append(_estimate("judge", config, seat.model, calls, seat.votes * length))
    return found


def plan(config: RunConfig, console: Console) -> None:
    """Print the estimates, and what a budget says to them. Sources are read into a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="pv-data-plan-") as folder:
        collect(Path(folder), config, Console(stderr=True))
        found = estimates(Path(folder), config)
    table = Table(title="What the run would ask")
    for column in ("stage", "model", "calls", "prompt tokens", "answer tokens", "at most", "USD", "at most"):
        table.add_column(column, justify="left" if column in ("stage", "model") else "right")
    for one in found:
        table.add_row(
            *(one.what, one.model, f"{one.calls:,}", f"{one.prompt_tokens:,}", f"{one.expected_tokens:,}"),
            *(_number(one.most_tokens, ","), _number(one.usd, ".2f"), _number(one.most_usd, ".2f")),
        )
    usd = [one.usd for one in found]
    total = sum(usd for usd in usd if usd is not None)
    table.add_row("all", "", f"{sum(one.calls for one in found):,}", "", "", "", f"{total:.2f}", "")
    console.print(table)
    if None in usd:
        console.print("Some models have no price: the sum leaves them out.")
    if config.budget_usd is not None and total > config.budget_usd:
        console.print(f"The budget, ${config.budget_usd:.2f}, would end the run before it is done.")


def _estimate(what: str, config: RunConfig, name: str, calls: int, characters: int) -> Estimate:
    model = config.models[name]
    prompt = calls * estimate_tokens("") + characters // 4
    limit = model.sampling.get("max_tokens") or model.sampling.get("max_completion_tokens")
    most = calls * limit if isinstance(limit, int) else None
    expected = calls * model.expected_tokens
    expected = expected if most is None else min(expected, most)
    price = model.prices.get(model.model)

    def usd(tokens: int | None) -> float | None:
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


def _number(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)
