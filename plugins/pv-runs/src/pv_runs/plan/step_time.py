"""How long a step takes."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.duration import Duration
from pv_runs.plan.generation_time import generation_times
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts
from pv_runs.plan.training_time import training_times

__all__ = ["FACTOR", "StepTime", "step_time"]

FACTOR = 2.0
"""How far off the estimate may be, in either direction, without anything being wrong."""


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """An estimate, not a measurement."""

    generation: tuple[Duration, ...]
    training: tuple[Duration, ...]
    sync: Duration
    """New weights for the rollout."""
    judge: Duration | None
    """What a step waits for the judge; None where it does not, or there is none."""
    other: Duration
    """What no GPU computes in."""
    seconds: float
    """Of a step. Validation, checkpoints and the start are not in it."""
    how: str
    """What is added up."""
    run_hours: float | None
    """None where the run's steps are not known."""
    gpu_hours: float | None
    """Of the run, over all GPUs."""
    usd: float | None
    """Of the run's GPUs; None where `plan.usd_per_gpu_hour` is not known."""

    @property
    def between(self) -> tuple[float, float]:
        """Seconds, a factor of `FACTOR` down and up."""
        return self.seconds / FACTOR, self.seconds * FACTOR


def step_time(setup: Setup, counts: Counts, judged: bool) -> StepTime:
    """Add up.

    - sync, colocate_async: `generation + training + sync + other`, one after the other on the same GPUs.
    - separate_async: `max(generation, training) + sync + other`, at the same time on GPUs of their own.

    The judge is asked about a response as soon as that has ended. In sync the step ends with the longest response,
    whose answer is waited for; otherwise a batch in flight ahead hides it.

    Args:
        setup: the run.
        counts: of a step.
        judged: whether there is a judge.
    """
    batch, assumed = setup.batch, setup.assumed
    generation, training = generation_times(setup), training_times(setup, counts)
    sync = _sync(setup)
    judge = None
    if judged and batch.mode == "sync":
        judge = Duration(
            name="judge", seconds=assumed.judge_latency_s, how="the last response's answer, assumed"
        )
    other = Duration(name="everything else", seconds=assumed.step_overhead_s, how="assumed")
    generating, updating = _total(generation), _total(training)
    waited = judge.seconds if judge else 0.0
    rest = sync.seconds + other.seconds
    if batch.separate:
        seconds = max(generating, updating) + rest
        how = (
            f"max(generation {generating:.0f}, training {updating:.0f}) + sync and everything else {rest:.0f}"
        )
    else:
        seconds = generating + waited + updating + rest
        said = f" + judge {waited:.0f}" * bool(judge)
        how = f"generation {generating:.0f}{said} + training {updating:.0f} + sync and everything else {rest:.0f}"
    hours = None if counts.steps is None else counts.steps * seconds / 3600
    gpu_hours = None if hours is None else hours * setup.gpus
    price = assumed.usd_per_gpu_hour
    return StepTime(
        generation=generation,
        training=training,
        sync=sync,
        judge=judge,
        other=other,
        seconds=seconds,
        how=how,
        run_hours=hours,
        gpu_hours=gpu_hours,
        usd=None if gpu_hours is None or price is None else gpu_hours * price,
    )


def _sync(setup: Setup) -> Duration:
    """`N b / bandwidth`, once a step."""
    size, rate = setup.model.parameters * setup.rollout.weight_bytes, setup.assumed.sync_gb_s
    return Duration(
        name="sync of the weights", seconds=size / (rate * 1e9), how=f"{size:.3g} B / {rate:g} GB/s"
    )


def _total(durations: tuple[Duration, ...]) -> float:
    return sum(duration.seconds for duration in durations)
