"""Changes that save memory of a GPU that generates."""

from __future__ import annotations

from pv_runs.plan.change import Change, change_rollout
from pv_runs.plan.memory import memory_of
from pv_runs.plan.setup import Setup

__all__ = ["larger_share", "no_sleeping_engines", "sleeping_engines", "smaller_share", "tensor_parallel"]

ROLLOUT = "actor_rollout_ref.rollout"


def larger_share(setup: Setup) -> Change | None:
    """More of the GPU for the rollout engine."""
    overrides = {f"{ROLLOUT}.gpu_memory_utilization": "0.9"}
    return change_rollout(setup, overrides, utilization=0.9) if setup.rollout.utilization < 0.9 else None


def smaller_share(setup: Setup) -> Change | None:
    """Less of it, in steps of 0.05, where something else needs the room."""
    crowded = [p for p in memory_of(setup).phases if p.name == "generation" and p.place != "rollout engine"]
    over = max(phase.over_gib for phase in crowded) / setup.cluster.gpu.memory_gib
    steps = -int(-over // 0.05)
    share = round(setup.rollout.utilization - 0.05 * steps, 2)
    if not steps or share < 0.2:
        return None
    return change_rollout(setup, {f"{ROLLOUT}.gpu_memory_utilization": f"{share:g}"}, utilization=share)


def tensor_parallel(setup: Setup) -> Change | None:
    """Twice the GPUs to a replica, within a node."""
    size = 2 * setup.rollout.tensor_parallel
    if size * setup.rollout.data_parallel * setup.rollout.pipeline_parallel > setup.rollout.gpus_per_node:
        return None
    return change_rollout(setup, {f"{ROLLOUT}.tensor_model_parallel_size": str(size)}, tensor_parallel=size)


def no_sleeping_engines(setup: Setup) -> Change | None:
    """separate_async without engines on the training GPUs."""
    if not setup.batch.separate or not setup.rollout.on_training_gpus:
        return None
    return change_rollout(setup, {"actor_rollout_ref.hybrid_engine": "False"}, on_training_gpus=False)


def sleeping_engines(setup: Setup) -> Change | None:
    """Engines on training GPUs give their memory back."""
    overrides = {f"{ROLLOUT}.free_cache_engine": "True"}
    return None if setup.rollout.sleeps else change_rollout(setup, overrides, sleeps=True)
