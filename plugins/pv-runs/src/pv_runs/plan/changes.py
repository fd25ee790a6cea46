"""Changes that save memory, those that cost least first."""

from __future__ import annotations

from pv_runs.plan import rollout_changes, training_changes
from pv_runs.plan.change import Changer

__all__ = ["CHANGES"]

CHANGES: tuple[Changer, ...] = (
    rollout_changes.sleeping_engines,
    training_changes.small_micro_batches,
    training_changes.fused_kernels,
    training_changes.checkpointing,
    training_changes.sharded,
    training_changes.chunked_entropy,
    training_changes.optimizer_offload,
    training_changes.param_offload,
    rollout_changes.larger_share,
    rollout_changes.smaller_share,
    rollout_changes.tensor_parallel,
    training_changes.ulysses,
    rollout_changes.no_sleeping_engines,
    training_changes.activation_offload,
    training_changes.offload_policy,
    training_changes.more_nodes,
)
"""In the order in which they are tried."""
