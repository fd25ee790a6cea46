"""GPUs and how work is divided over them; what cannot be divided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pv_runs.plan.finding import Finding
from pv_runs.plan.setup import Setup

__all__ = ["Layout", "cluster_findings", "division_findings", "layout_of"]

ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Who does what."""

    mode: str
    train_gpus: int
    rollout_gpus: int
    """In sync and colocate_async they are the ones that train."""
    total_gpus: int
    """Each counted once."""
    shards: int
    """GPUs that share one copy of the weights and of Adam's states (FSDP)."""
    data_parallel: int
    """Groups of GPUs with rows of their own."""
    sequence_parallel: int
    """GPUs of such a group, which share a row (Ulysses)."""
    tensor_parallel: int
    """GPUs of the rollout that share a layer."""
    replicas: int
    """Of the rollout."""


def layout_of(setup: Setup) -> Layout:
    """Read it off."""
    training, rollout = setup.training, setup.rollout
    return Layout(
        mode=setup.batch.mode,
        train_gpus=training.gpus,
        rollout_gpus=rollout.gpus,
        total_gpus=setup.gpus,
        shards=training.shards,
        data_parallel=training.data_parallel,
        sequence_parallel=training.ulysses,
        tensor_parallel=rollout.tensor_parallel,
        replicas=rollout.replicas,
    )


def division_findings(setup: Setup) -> tuple[Finding, ...]:
    """What cannot be divided as the config says; verl or vLLM stops with an error."""
    found = (*_training(setup), *_rollout(setup))
    return tuple(Finding(severity="does not run", text=text, overrides=helps) for text, helps in found)


def cluster_findings(setup: Setup) -> tuple[Finding, ...]:
    """What the cluster does not have."""
    cluster, training, rollout = setup.cluster, setup.training, setup.rollout
    found: list[Finding] = []
    there = f"{cluster.nodes} x {cluster.gpus_per_node} = {cluster.nodes * cluster.gpus_per_node}"
    if setup.gpus > cluster.nodes * cluster.gpus_per_node:
        text = f"the run takes {setup.gpus} GPUs and the cluster has {there}"
        found.append(Finding(severity="does not run", text=text))
    elif setup.gpus < cluster.nodes * cluster.gpus_per_node:
        text = f"the run takes {setup.gpus} GPUs of the {there} that the cluster has"
        found.append(Finding(severity="note", text=text))
    widest = max(training.gpus_per_node, rollout.gpus_per_node)
    if widest > cluster.gpus_per_node:
        text = f"the run takes {widest} GPUs of a node, and one has {cluster.gpus_per_node} (cluster.gpus_per_node)"
        found.append(Finding(severity="does not run", text=text))
    return tuple(found)


def _training(setup: Setup) -> Iterator[tuple[str, tuple[str, ...]]]:
    """verl/models/transformers/monkey_patch.py has the rule of heads."""
    model, training, batch = setup.model, setup.training, setup.batch
    ulysses, heads, keys = training.ulysses, model.num_attention_heads, model.num_key_value_heads
    size = f"{ACTOR}.ulysses_sequence_parallel_size"
    if heads % ulysses or (keys % ulysses and ulysses % keys):
        yield (
            f"{heads} heads and {keys} key-value heads cannot be shared by {ulysses} GPUs ({size}): it has to "
            "divide the heads, and divide the key-value heads or be a multiple of them",
            (),
        )
    if training.gpus % ulysses:
        yield f"{training.gpus} training GPUs are no multiple of {size} {ulysses}", (f"{size}=1",)
    if ulysses > 1 and not training.remove_padding:
        yield (
            f"{size} is {ulysses}, which needs use_remove_padding",
            ("actor_rollout_ref.model.use_remove_padding=True",),
        )
    if training.gpus % training.shards:
        text = f"{training.gpus} training GPUs are no multiple of fsdp_size {training.fsdp_size}"
        yield text, (f"{ACTOR}.fsdp_config.fsdp_size=-1",)
    rows = batch.mini_batch * batch.n
    if rows % training.data_parallel:
        yield (
            f"an update has {batch.mini_batch} x {batch.n} = {rows} rows, no multiple of the {training.data_parallel} "
            "data parallel groups (verl/workers/engine_workers.py)",
            (),
        )
    for name, cap in (("ppo", training.update_tokens), ("log_prob", training.log_prob_tokens)):
        place = ACTOR if name == "ppo" else ROLLOUT
        follows = name == "log_prob" and cap == training.update_tokens  # then one change is enough
        if training.dynamic and not follows and cap * ulysses < batch.longest:
            yield (
                f"a row can have {batch.longest:,} tokens and {place}.{name}_max_token_len_per_gpu leaves {cap:,} x "
                f"{ulysses} = {cap * ulysses:,}: it cannot be trained (verl/utils/seqlen_balancing.py)",
                (f"{place}.{name}_max_token_len_per_gpu={-(-batch.longest // ulysses)}",),
            )


def _rollout(setup: Setup) -> Iterator[tuple[str, tuple[str, ...]]]:
    """verl/workers/rollout/replica.py and vLLM's own rules."""
    model, rollout, training = setup.model, setup.rollout, setup.training
    size, name = rollout.tensor_parallel, f"{ROLLOUT}.tensor_model_parallel_size"
    heads, keys = model.num_attention_heads, model.num_key_value_heads
    if heads % size or model.intermediate_size % size or (keys % size and size % keys):
        yield (
            f"{heads} heads, {keys} key-value heads and {model.intermediate_size} columns of the MLP cannot be shared "
            f"by {size} GPUs ({name}): it has to divide the first and the last, and divide the second or be a multiple",
            (),
        )
    pools = [rollout.gpus] + [training.gpus] * (setup.batch.separate and rollout.on_training_gpus)
    for gpus in pools:
        if gpus % rollout.replica_gpus:
            yield (
                f"{gpus} GPUs are no multiple of the {rollout.replica_gpus} of a replica ({name})",
                (f"{name}=1",),
            )
    narrow, wide = sorted((rollout.gpus_per_node, rollout.replica_gpus))
    if wide % narrow:
        yield (
            f"replicas of {rollout.replica_gpus} GPUs do not fill nodes of {rollout.gpus_per_node} ({name})",
            (),
        )
    if not 0 < rollout.utilization <= 1:
        text = f"{ROLLOUT}.gpu_memory_utilization is {rollout.utilization:g}; it is a share, above 0 and at most 1"
        yield text, (f"{ROLLOUT}.gpu_memory_utilization=0.8",)
