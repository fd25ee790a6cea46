"""The memory of a training GPU, phase by phase."""

from __future__ import annotations

from pv_runs.plan.parts import Part, Phase
from pv_runs.plan.setup import GIB, Setup
from pv_runs.plan.transient import activations, gathered, log_prob_logits, update_logits

__all__ = ["kept_while_generating", "training_phases"]


def training_phases(setup: Setup) -> tuple[Phase, ...]:
    """Update, Adam's step and log-probs.

    verl's `param_offload` and `optimizer_offload` bring everything back to the GPU for as long as a phase that needs it
    runs (`BaseEngineCtx._context_switch`, verl/workers/engine/base.py): an update has weights, gradients and Adam's
    states on the GPU whatever they say. They free memory for the log-probs and for a rollout on the same GPU.
    """
    training = setup.training
    weights, gradients, adam = (
        _shard(setup, "weights", 1),
        _shard(setup, "gradients", 1),
        _shard(setup, "Adam", 2),
    )
    coming = (gathered(setup, True), activations(setup, training.update_tokens, True), update_logits(setup))
    inferring = (
        gathered(setup, False),
        activations(setup, training.log_prob_tokens, False),
        log_prob_logits(setup),
    )
    update = (weights, gradients, adam, *coming, _lost(setup, coming), *_always(setup))
    # AdamW of torch makes a temporary as large as the weights (foreach); on the host nothing of it is here.
    adam_step = (weights, gradients, adam, _shard(setup, "Adam's temporaries", 1), *_always(setup))
    log_probs = [weights, *([] if training.optimizer_offload else [adam]), *inferring]
    phases = [("update", update), ("Adam's step", adam_step)]
    if training.old_log_prob or training.reference:
        phases.append(("log-probs", (*log_probs, _lost(setup, inferring), *_always(setup))))
    memory = setup.cluster.gpu.memory_gib
    return tuple(
        Phase(place="training GPU", name=name, parts=_present(parts), available_gib=memory)
        for name, parts in phases
    )


def kept_while_generating(setup: Setup) -> tuple[Part, ...]:
    """What training leaves on a GPU that a rollout engine shares with it. Gradients are freed after an update."""
    training = setup.training
    parts = [] if training.param_offload else [_shard(setup, "weights", 1)]
    parts += [] if training.optimizer_offload else [_shard(setup, "Adam", 2)]
    return _present((*parts, _context(setup)))


def _shard(setup: Setup, name: str, values: int) -> Part:
    """`values N b / S` bytes; 0 on the GPU with `offload_policy`."""
    training, parameters = setup.training, setup.model.parameters
    if training.offload_policy and training.strategy == "fsdp2":
        return Part(name=name, gib=0.0, how="in the host's memory (offload_policy)")
    each = values * training.weight_bytes
    how = f"{each} x {parameters:.4g} / {training.shards}"
    return Part(name=name, gib=each * parameters / training.shards / GIB, how=how)


def _lost(setup: Setup, parts: tuple[Part, ...]) -> Part:
    share, total = setup.assumed.fragmentation, sum(part.gib for part in parts)
    return Part(name="fragmentation", gib=share * total, how=f"{share:g} x {total:.1f} GiB")


def _context(setup: Setup) -> Part:
    return Part(name="CUDA context, NCCL", gib=setup.assumed.context_gib, how="assumed GiB")


def _always(setup: Setup) -> tuple[Part, ...]:
    """The context, and what a rollout engine on the same GPU keeps; without `free_cache_engine` its whole share."""
    rollout, memory = setup.rollout, setup.cluster.gpu.memory_gib
    if not rollout.on_training_gpus:
        return (_context(setup),)
    if not rollout.sleeps:
        share = rollout.utilization * memory
        how = f"{rollout.utilization:g} x {memory:g} GiB (free_cache_engine is off)"
        return (_context(setup), Part(name="rollout engine's share", gib=share, how=how))
    sleeping = setup.assumed.sleeping_rollout_gib
    return (_context(setup), Part(name="sleeping rollout engine", gib=sleeping, how="assumed GiB"))


def _present(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.gib > 0)
