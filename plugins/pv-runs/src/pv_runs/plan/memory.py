"""Memory of every place of a run: training GPU, rollout GPU, rollout engine, host."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pv_runs.plan.setup import GIB, Setup
from pv_runs.plan.training_memory import Part, Phase, kept_while_generating, training_phases

__all__ = ["KvCache", "Memory", "host_parts", "kv_cache", "memory_of", "rollout_phases", "weight_shard_bytes"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What is where, and whether it fits."""

    phases: tuple[Phase, ...]
    """Of the GPUs; each place has to bear each of its phases."""
    host: tuple[Part, ...]
    """Of one training node."""
    host_available_gib: float | None
    """None: not known, and not checked."""
    kv_cache: KvCache

    @property
    def host_gib(self) -> float:
        """Of one training node."""
        return sum(part.gib for part in self.host)

    @property
    def over_gib(self) -> float:
        """GiB that are missing, over all phases and the host; 0 where everything fits."""
        known = self.host_available_gib
        host = 0.0 if known is None else max(0.0, self.host_gib - known)
        return host + sum(phase.over_gib for phase in self.phases)

    @property
    def fits(self) -> bool:
        """Whether all of it does."""
        return self.over_gib == 0


def memory_of(setup: Setup) -> Memory:
    """Compute it."""
    return Memory(
        phases=(*training_phases(setup), *rollout_phases(setup)),
        host=host_parts(setup),
        host_available_gib=setup.cluster.host_memory_gib,
        kv_cache=kv_cache(setup),
    )


@dataclass(frozen=True, kw_only=True)
class KvCache:
    """Room for keys and values."""

    token_bytes: float
    """Bytes of one token on one GPU."""
    gib: float
    """GiB on one GPU: what the engine's weights and working memory leave of its share; 0 if they leave nothing."""
    tokens: int
    """That fit in a copy of the model."""
    mean_rows: int
    """Rows of mean prompt and mean response that fit."""
    longest_rows: int
    """Rows of the longest prompt and the longest response that fit."""
    concurrent: int
    """Responses that a replica generates at the same time: as many mean rows as fit, at most `max_num_seqs`."""


def token_bytes(setup: Setup) -> float:
    """`2 L K b / (T P)`: keys and values of every layer. Heads are copied where there are fewer than T.

    Example: Qwen3-8B in bf16 on one GPU, 2 x 36 x 1,024 x 2 = 147,456 bytes.
    """
    model, rollout = setup.model, setup.rollout
    split = min(rollout.tensor_parallel, model.num_key_value_heads) * rollout.pipeline_parallel
    return 2 * model.num_hidden_layers * model.key_width * rollout.weight_bytes / split


def weight_shard_bytes(setup: Setup) -> float:
    """`N b / (T P)`, weights of the engine on one GPU."""
    rollout = setup.rollout
    return (
        setup.model.parameters * rollout.weight_bytes / (rollout.tensor_parallel * rollout.pipeline_parallel)
    )


def kv_cache(setup: Setup) -> KvCache:
    """What is left of `gpu_memory_utilization` for keys and values."""
    assumed, rollout = setup.assumed, setup.rollout
    each = token_bytes(setup)
    share = rollout.utilization * setup.cluster.gpu.memory_gib - assumed.rollout_working_gib
    room = max(0.0, share - weight_shard_bytes(setup) / GIB)
    tokens = int(room * GIB / each)
    mean_rows = int(tokens / (assumed.prompt_tokens + assumed.response_tokens))
    return KvCache(
        token_bytes=each,
        gib=room,
        tokens=tokens,
        mean_rows=mean_rows,
        longest_rows=tokens // setup.batch.longest,
        concurrent=min(mean_rows, rollout.max_num_seqs) * rollout.data_parallel,
    )


def rollout_phases(setup: Setup) -> tuple[Phase, ...]:
    """Within an engine's share, where one row of the longest has to fit; and on the GPU as a whole."""
    assumed, rollout, memory = setup.assumed, setup.rollout, setup.cluster.gpu.memory_gib
    share, each, longest = rollout.utilization * memory, token_bytes(setup), setup.batch.longest
    split = f"{rollout.tensor_parallel}" + f" / {rollout.pipeline_parallel}" * (rollout.pipeline_parallel > 1)
    inside = (
        Part(
            "weights",
            weight_shard_bytes(setup) / GIB,
            f"{rollout.weight_bytes} x {setup.model.parameters:.4g} / {split}",
        ),
        Part("activations, CUDA graphs", assumed.rollout_working_gib, "assumed GiB"),
        Part("KV cache, the longest row", longest * each / GIB, f"{longest:,} x {each:,.0f}"),
    )
    engine = Part("rollout engine's share", share, f"{rollout.utilization:g} x {memory:g} GiB")
    phases = [Phase(place="rollout engine", name="generation", parts=inside, available_gib=share)]
    if rollout.on_training_gpus:
        parts = (engine, *kept_while_generating(setup))
        phases.append(Phase(place="training GPU", name="generation", parts=parts, available_gib=memory))
    if setup.batch.separate:
        buckets = 2 * rollout.bucket_mb / 1024
        coming = Part("buffers of new weights", buckets, f"2 x {rollout.bucket_mb:,} MiB")
        phases.append(
            Phase(place="rollout GPU", name="generation", parts=(engine, coming), available_gib=memory)
        )
    return tuple(phases)


def host_parts(setup: Setup) -> tuple[Part, ...]:
    """Parts of one node, the sum over its GPUs.

    - the reference model, which verl's FSDP engine always keeps there (`CPUOffload` for `forward_only`,
      verl/workers/engine/fsdp/transformer_impl.py), in its own `model_dtype`; twice with `strategy: fsdp`, which
      allocates gradients with it (`init_flat_param_attributes`, torch/distributed/fsdp/_flat_param.py);
    - what is offloaded: weights, gradients, Adam's states, inputs of layers;
    - in separate_async a copy of the policy for old log-probs, and one more with several updates a sync
      (`_compute_old_log_prob`, verl/trainer/ppo/v1/trainer_separate_async.py);
    - while it starts, the whole model, in the process that reads it; in each where the embeddings are tied.
    """
    model, training, batch = setup.model, setup.training, setup.batch
    each, gpus, count = training.weight_bytes, training.gpus_per_node, model.parameters
    share = gpus / training.shards
    stays = training.stays_on_host
    copies = (1 + (batch.sync_step > 1)) if batch.separate and training.old_log_prob else 0
    inputs = training.activation_offload and training.checkpointing
    first = training.strategy == "fsdp"
    parts = (
        ("reference model", training.reference, (training.reference_bytes * (1 + first), count, share)),
        ("weights", training.param_offload or stays, (each, count, share)),
        ("gradients", stays, (each, count, share)),
        ("Adam", training.optimizer_offload or stays, (2 * each, count, share)),
        ("copies of the policy", copies, (copies, each, count, share)),
        (
            "inputs of layers",
            inputs,
            (2, model.num_hidden_layers, training.update_tokens, model.hidden_size, gpus),
        ),
        ("the model while it loads", True, (each, count, gpus if model.tie_word_embeddings else 1)),
    )
    return tuple(
        Part(name, math.prod(factors) / GIB, " x ".join(f"{factor:,.4g}" for factor in factors))
        for name, there, factors in parts
        if there
    )
