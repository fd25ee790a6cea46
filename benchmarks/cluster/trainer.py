"""verl's trainer modes as processes in time (simpy): rollouts end one by one, are judged, and are trained on.

A response decodes at its own speed whatever else is decoded; prefill takes no time. A group is what verl takes: it is
there when all of its responses have their rewards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import simpy
from cluster.judge import JudgePolicy, JudgeQueue

__all__ = ["Cluster", "Result", "simulate"]

Mode: TypeAlias = Literal["sync", "colocate_async", "separate_async", "one_step_off"]
"""- `sync`: rollouts, then training, on the same GPUs;
- `colocate_async`: likewise, with one batch more on its way; what is not done when a step's groups are there pauses;
- `separate_async`: rollouts go on while the trainer trains, with one batch more on its way;
- `one_step_off`: verl's older trainer: when a batch is there the next is begun, and generated while it is trained on.

The two `_async` modes take the groups of a step as they come; those that were begun first go first.
"""
Group: TypeAlias = Callable[[int], list[float]]
"""Seconds that each response of the group with this number decodes."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    mode: Mode
    prompts: int
    """Groups a step."""
    group: Group
    train_s: float
    """From a step's rows to the end of the update."""
    sync_s: float = 0.0
    """Then, to bring the weights to the rollout, which pauses for it."""
    warmup_batches: float = 1.0
    """How many more are on their way than are trained on: verl's `num_warmup_batches`, of the two `_async` modes."""
    poll_s: float = 2.0
    """How often verl looks whether a step's groups are there; its default."""


@dataclass(frozen=True, kw_only=True)
class Result:
    step_s: list[float]
    failed: float
    """Share of the judged rows that got no answer."""


class Rollout:
    """The engines: all of them decode, or all pause."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.running, self.paused = env.event().succeed(), env.event()

    def pause(self) -> None:
        if not self.paused.triggered:
            self.running = self.env.event()
            self.paused.succeed()

    def resume(self) -> None:
        if self.paused.triggered:
            self.paused = self.env.event()
            self.running.succeed()

    def decode(self, seconds: float) -> Iterator[Any]:
        while True:
            yield self.running
            begin = self.env.now
            done = self.env.timeout(seconds)
            yield done | self.paused
            if done.processed:
                return
            seconds -= self.env.now - begin


class Trainer:
    def __init__(self, cluster: Cluster, policy: JudgePolicy | None, seed: int) -> None:
        self.cluster, self.env = cluster, simpy.Environment()
        self.rollout = Rollout(self.env)
        self.judge = JudgeQueue(self.env, policy, random.Random(seed)) if policy else None
        self.waiting: list[simpy.Process] = []
        """Groups that were not trained on, in the order in which they were begun."""
        self.submitted = self.judged = 0
        self.step_s: list[float] = []

    def submit(self, batches: float = 1.0) -> None:
        for _ in range(int(batches * self.cluster.prompts)):
            self.waiting.append(self.env.process(self.run_group(self.cluster.group(self.submitted))))
            self.submitted += 1

    def run_group(self, seconds: list[float]) -> Iterator[Any]:
        yield simpy.AllOf(self.env, [self.env.process(self.run_row(one)) for one in seconds])
        return len(seconds)

    def run_row(self, seconds: float) -> Iterator[Any]:
        yield from self.rollout.decode(seconds)
        if self.judge and not self.judge.policy.batched:
            self.judged += 1
            yield from self.judge.ask()

    def wait(self) -> Iterator[Any]:
        """Until the groups of a step are there; gives them."""
        most = self.cluster.prompts
        while True:
            done = [group for group in self.waiting if not group.is_alive][:most]
            if len(done) == most:
                self.waiting = [group for group in self.waiting if group not in done]
                return done
            yield self.env.timeout(self.cluster.poll_s)

    def run(self, steps: int) -> Iterator[Any]:
        cluster, one_off = self.cluster, self.cluster.mode == "one_step_off"
        colocated = cluster.mode in ("sync", "colocate_async")
        if cluster.mode != "sync":
            self.submit(1.0 if one_off else cluster.warmup_batches)
        for _ in range(steps):
            begin = self.env.now
            if not one_off:
                self.submit()
            groups = yield from self.wait()
            if one_off:
                yield from self.sync()
                self.submit()
            if colocated:
                self.rollout.pause()
            if self.judge and self.judge.policy.batched:
                rows = sum(group.value for group in groups)
                self.judged += rows
                yield simpy.AllOf(self.env, [self.env.process(self.judge.ask()) for _ in range(rows)])
            yield self.env.timeout(cluster.train_s)
            if not one_off:
                yield from self.sync()
            self.rollout.resume()
            self.step_s.append(self.env.now - begin)

    def sync(self) -> Iterator[Any]:
        if self.cluster.sync_s:
            self.rollout.pause()
            yield self.env.timeout(self.cluster.sync_s)
            self.rollout.resume()


def simulate(
    cluster: Cluster, policy: JudgePolicy | None, steps: int, warm_up: int = 2, seed: int = 0
) -> Result:
    """So many steps, those of the warm-up left out; without a policy nobody is asked."""
    trainer = Trainer(cluster, policy, seed)
    trainer.env.run(trainer.env.process(trainer.run(warm_up + steps)))
    failed = trainer.judge.failed / max(1, trainer.judged) if trainer.judge else 0.0
    return Result(step_s=trainer.step_s[warm_up:], failed=failed)
