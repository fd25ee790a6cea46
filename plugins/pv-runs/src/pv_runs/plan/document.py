"""The plan as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pv_runs.plan.planning import Plan
from pv_runs.plan.step_time import FACTOR

__all__ = ["document"]


def document(plan: Plan) -> dict[str, Any]:
    """A tree of plain values.

    Keys: `runs`; `estimate`, what the numbers are; `layout`; `memory`, with `fits`, `phases` (each with its sum `gib`),
    `host` and `kv_cache`; `remedy`; `counts`; `time`, with `between`; `judge`; `findings`; `assumed`; `setup`.
    """
    memory = asdict(plan.memory)
    for phase, shown in zip(plan.memory.phases, memory["phases"], strict=True):
        shown["gib"], shown["over_gib"] = phase.gib, phase.over_gib
    setup = asdict(plan.setup)
    return {
        "runs": plan.runs,
        "estimate": {"measured": False, "factor": FACTOR},
        "layout": asdict(plan.layout),
        "memory": {**memory, "fits": plan.memory.fits, "host_gib": plan.memory.host_gib},
        "remedy": None if plan.remedy is None else asdict(plan.remedy),
        "counts": asdict(plan.counts),
        "time": {**asdict(plan.time), "between": list(plan.time.between)},
        "judge": None if plan.judge is None else asdict(plan.judge),
        "findings": [asdict(finding) for finding in plan.findings],
        "assumed": setup.pop("assumed"),
        "setup": setup,
    }
