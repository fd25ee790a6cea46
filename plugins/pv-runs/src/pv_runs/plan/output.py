"""Output of `pv-rl plan`: the plan as blocks for a terminal, and as a document for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from pv_judge.pages.blocks import Block, Column, Heading, Paragraph, Table, Tone
from pv_runs.plan.assumed import Assumed
from pv_runs.plan.planning import Plan
from pv_runs.plan.ranges import FACTOR, RANGES, between

__all__ = ["blocks", "document"]

TONES: dict[str, Tone] = {"does not run": "bad", "does not fit": "bad", "warning": "warn", "note": ""}


class Line(NamedTuple):
    """A line of a table: what, how much, and the formula or a remark."""

    name: str
    amount: str
    how: str = ""
    tone: Tone = ""
    between: tuple[float, float] | None = None
    """Where the amount is to be expected."""


def blocks(plan: Plan) -> Iterator[Block]:
    """All of it: the verdict, what it rests on, what was found, what was assumed."""
    yield Paragraph(_verdict(plan), "strong")
    yield Paragraph(
        "An estimate from the config and from the assumptions below, not a measurement. To be off by a factor of "
        f"{FACTOR:g} is normal, unless a measured range says less."
    )
    yield Heading("GPUs")
    yield from map(Paragraph, _gpus(plan))
    yield Heading("Memory, GiB")
    yield _table(_memory(plan))
    yield Paragraph(_cache(plan))
    yield Heading("Step")
    yield from map(Paragraph, _step(plan))
    yield _table(_time(plan), "s")
    yield from map(Paragraph, _run(plan))
    yield Heading("Judge")
    yield from map(Paragraph, _judge(plan))
    yield Heading("Findings")
    yield from _findings(plan)
    yield Heading("Assumed (change one with ++plan.NAME=VALUE; docs/guides/plan.md says where it comes from)")
    yield _table(_assumed(plan.setup.assumed))


def document(plan: Plan) -> dict[str, Any]:
    """The plan for a program; `to_json` writes it.

    Keys: `runs`; `estimate`, what the numbers are; `layout`; `memory`, with `fits`, `phases` (each with its sum `gib`),
    `host` and `kv_cache`; `remedy`; `counts`; `time`, with `between`; `judge`; `findings`; `assumed`; `setup`.
    """
    memory = asdict(plan.memory)
    for phase, shown in zip(plan.memory.phases, memory["phases"], strict=True):
        shown["gib"], shown["over_gib"] = phase.gib, phase.over_gib
    setup = asdict(plan.setup)
    return {
        "runs": plan.runs,
        "estimate": {"measured": False, "factor": FACTOR, "ranges": RANGES},
        "layout": plan.layout,
        "memory": {**memory, "fits": plan.memory.fits, "host_gib": plan.memory.host_gib},
        "remedy": plan.remedy,
        "counts": plan.counts,
        "time": {**asdict(plan.time), "between": plan.time.between},
        "judge": plan.judge,
        "findings": plan.findings,
        "assumed": setup.pop("assumed"),
        "setup": setup,
    }


def _table(lines: Iterator[Line], unit: str = "") -> Table:
    known = list(lines)
    columns: list[Column[Line]] = [
        Column("", lambda line: line.name, left=True),
        Column(unit, lambda line: line.amount),
        Column("", lambda line: line.how, left=True, wrap=True),
    ]
    if any(line.between for line in known):
        columns.insert(2, Column("from, to", _range))
    return Table.of(columns, known, tones={number: line.tone for number, line in enumerate(known)})


def _range(line: Line) -> str:
    return "{:.1f} {:.1f}".format(*line.between) if line.between else ""


def _memory(plan: Plan) -> Iterator[Line]:
    """A block for each phase, then the host."""
    memory = plan.memory
    for phase in memory.phases:
        fits = f"{phase.over_gib:.1f} too many" if phase.over_gib else "fits"
        of = f"of {phase.available_gib:g}: {fits}"
        key, alone = f"memory: {phase.name}", plan.setup.training.gpus == 1
        measured = between(key, phase.gib, alone) if alone and key in RANGES else None
        name, tone = f"{phase.place}, {phase.name}", "bad" if phase.over_gib else "strong"
        yield Line(name, f"{phase.gib:.1f}", of, tone, measured)
        for part in sorted(phase.parts, key=lambda part: -part.gib):
            yield Line(f"  {part.name}", f"{part.gib:.1f}", part.how)
    known = memory.host_available_gib
    room = "of the host, whose size is not known" if known is None else f"of the host's {known:g}"
    yield Line("a training node", f"{memory.host_gib:.0f}", room, "strong")
    for part in sorted(memory.host, key=lambda part: -part.gib):
        yield Line(f"  {part.name}", f"{part.gib:.1f}", part.how)


def _cache(plan: Plan) -> str:
    cache = plan.memory.kv_cache
    return (
        f"KV cache: {cache.gib:.1f} GiB a GPU at {cache.token_bytes:,.0f} bytes a token hold {cache.tokens:,} tokens: "
        f"{cache.mean_rows:,} rows of mean length, or {cache.longest_rows:,} of {plan.setup.batch.longest:,} tokens"
    )


def _time(plan: Plan) -> Iterator[Line]:
    time = plan.time
    for name, durations in (("generation", time.generation), ("training", time.training)):
        yield Line(name, f"{sum(one.seconds for one in durations):.1f}", tone="strong")
        for one in durations:
            yield Line(f"  {one.name}", f"{one.seconds:.1f}", one.how, between=one.between)
    for one in (time.sync, *([time.judge] if time.judge else []), time.other):
        yield Line(one.name, f"{one.seconds:.1f}", one.how, between=one.between)
    yield Line("a step", f"{time.seconds:.0f}", time.how, "strong", time.between)
    if time.first:
        yield Line(time.first.name, f"{time.first.seconds:.1f}", time.first.how, between=time.first.between)


def _findings(plan: Plan) -> Iterator[Block]:
    if not plan.findings:
        yield Paragraph("none")
    for finding in plan.findings:
        yield Paragraph(f"{finding.severity}: {finding.text}", TONES[finding.severity])
        if finding.overrides and finding.severity != "does not fit":  # those come below, once
            yield Paragraph(f"    {' '.join(finding.overrides)}")
    remedy = plan.remedy
    if remedy is None:
        return
    if remedy.fits:
        taken = f", on {remedy.gpus} GPUs" if remedy.gpus != plan.layout.total_gpus else ""
        yield Paragraph(f"It fits{taken} with: {' '.join(remedy.overrides)}", "strong")
        full = f"The fullest GPU then has {100 * remedy.fullest:.0f}% of its memory taken"
        yield Paragraph(f"{full}, and a training node {remedy.host_gib:.0f} GiB of its host's.")
    else:
        tried = f" The best: {' '.join(remedy.overrides)}" if remedy.overrides else ""
        text = f"No change that the plan knows makes it fit; {remedy.over_gib:.0f} GiB stay missing.{tried}"
        yield Paragraph(text, "strong")


def _assumed(assumed: Assumed) -> Iterator[Line]:
    for field in fields(assumed):  # pyright: ignore[reportArgumentType]
        value = getattr(assumed, field.name)
        described = Assumed.__pydantic_fields__[field.name].description or ""  # pyright: ignore[reportAttributeAccessIssue]
        first = " ".join(described.split()).split(". ")[0].rstrip(".")
        yield Line(field.name, "not given" if value is None else f"{value:g}", first)


def _verdict(plan: Plan) -> str:
    """What is most worth knowing, in a line."""
    gpu, layout = plan.setup.cluster.gpu, plan.layout
    size = f"{plan.setup.model.parameters / 1e9:.3g}B parameters ({plan.setup.model_source})"
    where = f"{layout.total_gpus} x {gpu.name}, {layout.mode}"
    stops = [one for one in plan.findings if one.severity in ("does not run", "does not fit")]
    said = (
        "nothing found that stops it"
        if plan.runs
        else f"{len(stops)} found that stop{'s' * (len(stops) == 1)} it"
    )
    return f"{size} on {where}: {said}"


def _gpus(plan: Plan) -> Iterator[str]:
    """Who does what."""
    layout, training = plan.layout, plan.setup.training
    yield (
        f"training: {layout.train_gpus} GPUs = {layout.data_parallel} data parallel x {layout.sequence_parallel} "
        f"sequence parallel (Ulysses); {training.strategy} shards the weights over {layout.shards}"
    )
    shared = "" if plan.setup.batch.separate else ", those that train"
    yield (
        f"rollout: {layout.rollout_gpus} GPUs{shared} = {layout.replicas} replicas of "
        f"{plan.setup.rollout.replica_gpus} (tensor parallel {layout.tensor_parallel})"
    )
    yield f"together: {layout.total_gpus}"


def _step(plan: Plan) -> Iterator[str]:
    """What a step and the run count."""
    counts, batch = plan.counts, plan.setup.batch
    yield (
        f"{counts.prompts:,} prompts x {batch.n} = {counts.rollouts:,} responses, {counts.updates} "
        f"update{'s' * (counts.updates > 1)}"
    )
    yield (
        f"{counts.generated_tokens:,.0f} tokens generated, {counts.trained_tokens:,.0f} with their prompts trained on; "
        f"the longest response is expected to have {counts.longest_response:,.0f}"
    )


def _run(plan: Plan) -> Iterator[str]:
    """What the run takes, where its length is known."""
    counts, time = plan.counts, plan.time
    if (
        counts.steps is None
        or counts.run_generated_tokens is None
        or time.run_hours is None
        or time.gpu_hours is None
    ):
        yield "The run's length is not known."
        return
    epochs = "" if counts.epochs is None else f" ({counts.epochs:.3g} epochs)"
    price = "" if time.usd is None else f", {time.usd:,.0f} USD"
    yield (
        f"run: {counts.steps:,} steps, {counts.samples:,} samples{epochs}, {counts.run_generated_tokens / 1e6:,.4g}M "
        f"tokens generated, {time.run_hours:,.3g} hours, {time.gpu_hours:,.4g} GPU hours{price}; validation, "
        "checkpoints and the start come on top"
    )


def _judge(plan: Plan) -> Iterator[str]:
    """What it is asked and what that costs."""
    cost, assumed = plan.judge, plan.setup.assumed
    if cost is None:
        yield "none: 0 calls"
        return
    yield (
        f"{cost.model or 'a model not known here'}: {cost.calls:,} calls a step at most, of {cost.input_tokens:,.0f} "
        f"tokens ({cost.instruction_tokens:,.0f} of instructions, their characters / {assumed.characters_per_token:g}) "
        f"and {cost.output_tokens:,.0f} of answer"
    )
    if cost.step_usd is None or cost.step_usd_cached is None or cost.longest_step_usd is None:
        yield "price: not known"
    else:
        total = "" if cost.run_usd is None else f", {cost.run_usd:,.0f} USD the run"
        yield (
            f"{cost.step_usd:.2f} USD a step{total}; {cost.step_usd_cached:.2f} a step if the instructions are cached; "
            f"{cost.longest_step_usd:.2f} if every response were of the longest"
        )
    waited = plan.time.judge
    yield (
        f"a step waits {waited.seconds:g} s for it"
        if waited
        else "no step waits for it here: its answers come while others are generated or trained on. (The paper, with "
        "the same overlap, reports about 20% more time with its judge.)"
    )
