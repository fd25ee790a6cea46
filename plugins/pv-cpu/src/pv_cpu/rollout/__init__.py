"""The rollout engine ``rollout.name=pv_cpu``: plain transformers behind verl's server interface.

    request   sampling parameters -> Request, or an error for what the engine cannot do
    sampling  logits -> log-probabilities of the processed distribution -> tokens
    cache     keys and values of all rows, one shared write column
    attention grouped attention for one new token a row
    model     build the model, check what it needs, load weights
    rows      the state of the rows that are being decoded
    engine    admit, prefill, decode, finish
    loop      the engine in a thread, with requests and commands from outside
    server    the Ray actor
    replica   what verl launches; adapter: what pushes the trainer's weights

Only ``request`` to ``loop`` hold the logic; they know neither Ray nor verl.
"""

from __future__ import annotations

from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["NAME", "register"]

NAME = "pv_cpu"
ADAPTER = "pv_cpu.rollout.adapter.ServerAdapter"


def _register_adapter(base: ModuleType) -> None:
    tools.attribute(base, "_ROLLOUT_REGISTRY")[(NAME, "async")] = ADAPTER


def _register_replica(replica: ModuleType) -> None:
    def load() -> type:
        from pv_cpu.rollout.replica import PvCpuReplica

        return PvCpuReplica

    tools.attribute(replica, "RolloutReplicaRegistry").register(NAME, load)


def register() -> None:
    """Enter both registries (``workers/rollout/base.py:84``, ``workers/rollout/replica.py:312``)."""
    tools.after_import("verl.workers.rollout.base", _register_adapter)
    tools.after_import("verl.workers.rollout.replica", _register_replica)
