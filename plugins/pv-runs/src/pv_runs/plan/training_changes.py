"""Changes that save memory of a training GPU."""

from __future__ import annotations

from dataclasses import replace

from pv_runs.plan.change import Change, change_rollout, change_training
from pv_runs.plan.setup import Setup

__all__ = [
    "activation_offload",
    "checkpointing",
    "chunked_entropy",
    "fused_kernels",
    "more_nodes",
    "offload_policy",
    "optimizer_offload",
    "param_offload",
    "sharded",
    "small_micro_batches",
    "ulysses",
]

ACTOR = "actor_rollout_ref.actor"
FSDP = f"{ACTOR}.fsdp_config"
MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"


def _micro_batches(setup: Setup, ulysses: int) -> Change | None:
    """Micro-batches of no more than the longest row."""
    training = setup.training
    tokens = -(-setup.batch.longest // ulysses)
    fewer = max(training.update_tokens, training.log_prob_tokens) > tokens
    if not training.dynamic or (ulysses == training.ulysses and not fewer):
        return None
    overrides = {f"{ACTOR}.ppo_max_token_len_per_gpu": str(tokens)}
    if training.log_prob_tokens != training.update_tokens:  # else it follows from that of the actor
        overrides[f"{ROLLOUT}.log_prob_max_token_len_per_gpu"] = str(tokens)
        overrides["actor_rollout_ref.ref.log_prob_max_token_len_per_gpu"] = str(tokens)
    if ulysses != training.ulysses:
        overrides[f"{ACTOR}.ulysses_sequence_parallel_size"] = str(ulysses)
    return change_training(setup, overrides, ulysses=ulysses, update_tokens=tokens, log_prob_tokens=tokens)


def small_micro_batches(setup: Setup) -> Change | None:
    """One row of the longest a micro-batch."""
    return _micro_batches(setup, setup.training.ulysses)


def fused_kernels(setup: Setup) -> Change | None:
    """Logits in chunks."""
    overrides = {f"{MODEL}.use_fused_kernels": "True"}
    return None if setup.training.fused else change_training(setup, overrides, fused=True)


def checkpointing(setup: Setup) -> Change | None:
    """Layers are computed again in the backward."""
    overrides = {f"{MODEL}.enable_gradient_checkpointing": "True"}
    return None if setup.training.checkpointing else change_training(setup, overrides, checkpointing=True)


def sharded(setup: Setup) -> Change | None:
    """No whole weights or gradients."""
    if setup.training.reshard and not setup.training.no_sync and setup.training.fsdp_size == -1:
        return None
    overrides = {
        f"{FSDP}.reshard_after_forward": "True",
        f"{FSDP}.use_no_sync_for_gradient_accumulation": "False",
        f"{FSDP}.fsdp_size": "-1",
    }
    return change_training(setup, overrides, reshard=True, no_sync=False, fsdp_size=-1)


def chunked_entropy(setup: Setup) -> Change | None:
    """The entropy of the old log-probs a few rows at a time."""
    overrides = {f"{ACTOR}.entropy_from_logits_with_chunking": "True"}
    return change_training(setup, overrides, eager_entropy=False) if setup.training.eager_entropy else None


def optimizer_offload(setup: Setup) -> Change | None:
    """Adam's states are away while nothing is updated."""
    overrides = {f"{FSDP}.optimizer_offload": "True"}
    return (
        None
        if setup.training.optimizer_offload
        else change_training(setup, overrides, optimizer_offload=True)
    )


def param_offload(setup: Setup) -> Change | None:
    """Weights are away while the rollout generates."""
    overrides = {f"{FSDP}.param_offload": "True"}
    return None if setup.training.param_offload else change_training(setup, overrides, param_offload=True)


def ulysses(setup: Setup) -> Change | None:
    """Twice the GPUs to a row, within a node, and half the tokens on each."""
    size = 2 * setup.training.ulysses
    return None if size > setup.training.gpus_per_node else _micro_batches(setup, size)


def activation_offload(setup: Setup) -> Change | None:
    """Inputs of layers to the host."""
    overrides = {f"{MODEL}.enable_activation_offload": "True"}
    return (
        None
        if setup.training.activation_offload
        else change_training(setup, overrides, activation_offload=True)
    )


def offload_policy(setup: Setup) -> Change | None:
    """Weights, gradients and Adam on the host for good; slow."""
    if setup.training.offload_policy and setup.training.strategy == "fsdp2":
        return None
    overrides = {f"{ACTOR}.strategy": "fsdp2", f"{FSDP}.offload_policy": "True"}
    return change_training(setup, overrides, strategy="fsdp2", offload_policy=True)


def more_nodes(setup: Setup) -> Change | None:
    """Twice the training nodes."""
    nodes = 2 * setup.training.nodes
    change = change_training(setup, {"trainer.nnodes": str(nodes)}, nodes=nodes)
    if setup.batch.separate:
        return change
    return replace(change, setup=change_rollout(change.setup, {}, nodes=nodes).setup)
