"""The plan's numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from pv_runs.plan.planning import Plan
from pv_runs.plan.training_memory import Phase

__all__ = ["gpus", "judge", "memory_heading", "run", "step", "verdict"]


def verdict(plan: Plan) -> str:
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


def gpus(plan: Plan) -> Iterator[str]:
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


def memory_heading(phase: Phase) -> tuple[str, str, str]:
    """Of a phase's block: what, how much, of how much."""
    said = f"{phase.over_gib:.1f} too many" if phase.over_gib else "fits"
    return f"{phase.place}, {phase.name}", f"{phase.gib:.1f}", f"of {phase.available_gib:g}: {said}"


def step(plan: Plan) -> Iterator[str]:
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


def run(plan: Plan) -> Iterator[str]:
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


def judge(plan: Plan) -> Iterator[str]:
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
