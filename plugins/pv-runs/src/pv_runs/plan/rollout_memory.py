"""The memory of a GPU that generates, and how many responses fit in it."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.parts import Part, Phase
from pv_runs.plan.setup import GIB, Setup
from pv_runs.plan.training_memory import kept_while_generating

__all__ = ["KvCache", "kv_cache", "rollout_phases", "weight_shard_bytes"]


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
            name="weights",
            gib=weight_shard_bytes(setup) / GIB,
            how=f"{rollout.weight_bytes} x {setup.model.parameters:.4g} / {split}",
        ),
        Part(name="activations, CUDA graphs", gib=assumed.rollout_working_gib, how="assumed GiB"),
        Part(name="KV cache, the longest row", gib=longest * each / GIB, how=f"{longest:,} x {each:,.0f}"),
    )
    engine = Part(name="rollout engine's share", gib=share, how=f"{rollout.utilization:g} x {memory:g} GiB")
    phases = [Phase(place="rollout engine", name="generation", parts=inside, available_gib=share)]
    if rollout.on_training_gpus:
        parts = (engine, *kept_while_generating(setup))
        phases.append(Phase(place="training GPU", name="generation", parts=parts, available_gib=memory))
    if setup.batch.separate:
        buckets = 2 * rollout.bucket_mb / 1024
        coming = Part(name="buffers of new weights", gib=buckets, how=f"2 x {rollout.bucket_mb:,} MiB")
        phases.append(
            Phase(place="rollout GPU", name="generation", parts=(engine, coming), available_gib=memory)
        )
    return tuple(phases)
