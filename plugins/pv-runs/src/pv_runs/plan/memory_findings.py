"""What does not fit, and what is tight."""

from __future__ import annotations

from collections.abc import Iterator

from pv_runs.plan.finding import Finding
from pv_runs.plan.memory import Memory
from pv_runs.plan.remedy import Remedy
from pv_runs.plan.setup import Setup

__all__ = ["memory_findings"]

TIGHT = 0.9
"""Share of the memory above which an estimate like this one says little."""


def memory_findings(setup: Setup, memory: Memory, remedy: Remedy | None) -> tuple[Finding, ...]:
    """Of the GPUs, of the host, of the KV cache."""
    return (*_phases(setup, memory, remedy), *_host(memory, remedy), *_cache(setup, memory))


def _phases(setup: Setup, memory: Memory, remedy: Remedy | None) -> Iterator[Finding]:
    for phase in memory.phases:
        text = (
            f"{phase.place}, {phase.name}: {phase.gib:.0f} GiB of {phase.available_gib:.0f}, most of it "
            f"{phase.largest.name} ({phase.largest.gib:.0f} GiB)"
        )
        if phase.over_gib:
            yield Finding(severity="does not fit", text=text, overrides=_helps(remedy))
        elif phase.place != "rollout engine" and phase.gib > TIGHT * phase.available_gib:
            less = f"actor_rollout_ref.rollout.gpu_memory_utilization={setup.rollout.utilization - 0.1:.2g}"
            overrides = (less,) if phase.name == "generation" else ()
            yield Finding(severity="warning", text=f"{text}: too near to call", overrides=overrides)


def _host(memory: Memory, remedy: Remedy | None) -> Iterator[Finding]:
    known = memory.host_available_gib
    if known is not None and memory.host_gib > known:
        text = f"a training node needs {memory.host_gib:.0f} GiB of its host's memory and has {known:.0f}"
        yield Finding(severity="does not fit", text=text, overrides=_helps(remedy))


def _helps(remedy: Remedy | None) -> tuple[str, ...]:
    return remedy.overrides if remedy is not None and remedy.fits else ()


def _cache(setup: Setup, memory: Memory) -> Iterator[Finding]:
    replicas = setup.rollout.replicas
    if not replicas or not memory.kv_cache.concurrent:
        return
    responses = setup.batch.rollouts * (1 + setup.batch.warmup) / replicas
    if responses > memory.kv_cache.concurrent:
        yield Finding(
            severity="note",
            text=f"a replica has up to {responses:.0f} responses in flight and generates {memory.kv_cache.concurrent} "
            "of mean length at a time; the others queue",
        )
