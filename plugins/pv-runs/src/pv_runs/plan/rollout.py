"""How responses are generated: verl's vLLM rollout."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.settings import Settings
from pv_runs.plan.training import BYTES

__all__ = ["Rollout", "read_rollout"]

ROLLOUT = "actor_rollout_ref.rollout"


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """The rollout's engines (verl/trainer/config/rollout/rollout.yaml)."""

    nodes: int
    """Of their own in separate_async, else the training nodes."""
    gpus_per_node: int
    tensor_parallel: int
    """GPUs that share a layer (`tensor_model_parallel_size`)."""
    data_parallel: int
    """Copies within a replica."""
    pipeline_parallel: int
    utilization: float
    """Share of the GPU's memory that an engine takes (`gpu_memory_utilization`)."""
    max_num_seqs: int
    """Responses that a replica generates at the same time, at most."""
    max_batched_tokens: int
    chunked_prefill: bool
    max_model_len: int | None
    """Tokens of prompt and response; None: the model's own."""
    weight_bytes: int
    """Of a weight and of a value in the KV cache (`dtype`)."""
    bucket_mb: int
    """MiB of a buffer that new weights come in (`update_weights_bucket_megabytes`)."""
    on_training_gpus: bool
    """Engines live on the training GPUs: all of them, or in separate_async the sleeping ones of `hybrid_engine`."""
    sleeps: bool
    """`free_cache_engine`: those give their memory back while training runs."""
    switches: bool
    """separate_async: those are woken to help (`hybrid_rollout.enable_switch`)."""
    backend: str
    """Of the checkpoint engine that brings new weights."""

    @property
    def gpus(self) -> int:
        """That generate."""
        return self.nodes * self.gpus_per_node

    @property
    def replica_gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor_parallel * self.data_parallel * self.pipeline_parallel

    @property
    def replicas(self) -> int:
        """Engines that requests are spread over."""
        return self.gpus // self.replica_gpus


def read_rollout(settings: Settings, separate: bool) -> Rollout:
    """Read it from verl's config.

    Args:
        settings: the config.
        separate: whether the rollout has GPUs of its own.

    Raises:
        ConfigError: a value is missing or not what it should be.
    """
    place = ROLLOUT if separate else "trainer"
    length = settings.value(f"{ROLLOUT}.max_model_len", None)
    return Rollout(
        nodes=settings.integer(f"{place}.nnodes", least=1),
        gpus_per_node=settings.integer(f"{place}.n_gpus_per_node", least=1),
        tensor_parallel=settings.integer(f"{ROLLOUT}.tensor_model_parallel_size", least=1),
        data_parallel=settings.integer(f"{ROLLOUT}.data_parallel_size", 1, least=1),
        pipeline_parallel=settings.integer(f"{ROLLOUT}.pipeline_model_parallel_size", 1, least=1),
        utilization=settings.number(f"{ROLLOUT}.gpu_memory_utilization"),
        max_num_seqs=settings.integer(f"{ROLLOUT}.max_num_seqs", 256, least=1),
        max_batched_tokens=settings.integer(f"{ROLLOUT}.max_num_batched_tokens", 8192, least=1),
        chunked_prefill=settings.flag(f"{ROLLOUT}.enable_chunked_prefill", True),
        max_model_len=None if length is None else settings.integer(f"{ROLLOUT}.max_model_len", least=1),
        weight_bytes=BYTES[settings.choice(f"{ROLLOUT}.dtype", tuple(BYTES), "bfloat16")],
        bucket_mb=settings.integer(
            f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", 2048, least=1
        ),
        on_training_gpus=not separate or settings.flag("actor_rollout_ref.hybrid_engine", True),
        sleeps=settings.flag(f"{ROLLOUT}.free_cache_engine", True),
        switches=separate and settings.flag("trainer.v1.separate_async.hybrid_rollout.enable_switch", False),
        backend=str(settings.value(f"{ROLLOUT}.checkpoint_engine.backend", "naive")),
    )
