"""Settings of verl's FSDP training engine and of its vLLM rollout engine."""

from __future__ import annotations

from dataclasses import dataclass

from pv_rl.errors import ConfigError
from pv_runs.model_shape import DTYPE_BYTES
from pv_runs.typed_config import Settings

__all__ = ["Rollout", "Training", "read_rollout", "read_training"]


ACTOR = "actor_rollout_ref.actor"
FSDP = f"{ACTOR}.fsdp_config"
MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"
REFERENCE = "actor_rollout_ref.ref"
STRATEGIES = ("fsdp", "fsdp2")


@dataclass(frozen=True, kw_only=True)
class Training:
    """The training GPUs and what is kept on them. `fsdp_config` is verl/trainer/config/engine/fsdp.yaml."""

    nodes: int
    gpus_per_node: int
    strategy: str
    """`fsdp` or `fsdp2`."""
    fsdp_size: int
    """GPUs that share one copy of the weights; -1: all of them."""
    ulysses: int
    """GPUs that share a row (`ulysses_sequence_parallel_size`)."""
    weight_bytes: int
    """Of a stored weight, its gradient and each of its two Adam states (`model_dtype`): 4 for verl's fp32."""
    param_offload: bool
    """Weights are in the host's memory between phases, not during them."""
    optimizer_offload: bool
    """The same for Adam's states: while an update runs they are on the GPU."""
    offload_policy: bool
    """fsdp2 alone: weights, gradients and states stay in the host's memory, and Adam runs there."""
    reshard: bool
    """`reshard_after_forward`. False: gathered weights stay for the backward."""
    no_sync: bool
    """`use_no_sync_for_gradient_accumulation`: whole gradients are kept on every GPU."""
    checkpointing: bool
    """`enable_gradient_checkpointing`: a layer's input alone is kept, and the rest computed again."""
    activation_offload: bool
    """`enable_activation_offload`: those inputs go to the host's memory."""
    fused: bool
    """`use_fused_kernels`: logits are made in chunks and never all there."""
    remove_padding: bool
    """`use_remove_padding`. Without it every row of a micro-batch is as long as its longest."""
    attention: str
    """`attn_implementation`; verl's default is flash_attention_2."""
    eager_entropy: bool
    """Neither compiled nor in chunks: the entropy of the old log-probs makes whole copies of the logits."""
    update_entropy: bool
    """The update computes the entropy too (`entropy_coeff`, `calculate_entropy`)."""
    temperature_one: bool
    """At temperature 1 verl scales no logits, and makes no copy of them."""
    update_tokens: int
    """Tokens of a micro-batch on one GPU, of an update."""
    log_prob_tokens: int
    """Tokens of a micro-batch on one GPU, of old log-probs."""
    reference_tokens: int
    """The same of reference log-probs."""
    dynamic: bool
    """`use_dynamic_bsz`: micro-batches by tokens, not by rows."""
    old_log_prob: bool
    """The actor's own log-probs are computed before the update (`algorithm.rollout_correction.bypass_mode`: not)."""
    reference: bool
    """There is a reference model: a KL loss, or a KL term in the reward."""
    reference_bytes: int
    """Of one of its weights."""
    critic: bool
    """There is a critic (`algorithm.adv_estimator: gae`), which the plan leaves out."""

    @property
    def masks(self) -> bool:
        """The attention takes a mask where rows of a micro-batch differ, and then has no flash kernel."""
        return self.attention in ("sdpa", "eager")

    @property
    def gpus(self) -> int:
        """That train."""
        return self.nodes * self.gpus_per_node

    @property
    def shards(self) -> int:
        """GPUs that share one copy of the weights."""
        return self.fsdp_size if 0 < self.fsdp_size < self.gpus else self.gpus

    @property
    def stays_on_host(self) -> bool:
        """Weights, gradients and Adam's states never live on the GPU: `offload_policy`, which only fsdp2 knows."""
        return self.offload_policy and self.strategy == "fsdp2"

    @property
    def data_parallel(self) -> int:
        """Groups of GPUs that each have rows of their own."""
        return max(1, self.gpus // self.ulysses)


def read_training(settings: Settings, longest: int) -> Training:
    """Read it from verl's config.

    Args:
        settings: the config.
        longest: tokens of the longest row, for micro-batches by rows.

    Raises:
        ConfigError: a value is missing or not what it should be, or the engine is another than FSDP.
    """
    reference = settings.flag(f"{ACTOR}.use_kl_loss") or settings.flag("algorithm.use_kl_in_reward", False)
    if settings.integer(f"{MODEL}.lora_rank", 0):
        raise ConfigError(f"{MODEL}.lora_rank is set; pv-rl plan supports only training of all weights")
    ulysses = max(
        settings.integer(f"{ACTOR}.ulysses_sequence_parallel_size", 1, least=1),
        settings.integer(f"{FSDP}.ulysses_sequence_parallel_size", 1, least=1),
    )
    dynamic = settings.flag(f"{ACTOR}.use_dynamic_bsz")
    limit, each = "max_token_len_per_gpu", 1
    if not dynamic:
        limit, each = "micro_batch_size_per_gpu", -(-longest // ulysses)
    rows = settings.integer(f"{ACTOR}.ppo_{limit}", least=1)
    update = rows * each
    log_prob, of_reference = (
        each * settings.integer(f"{place}.log_prob_{limit}", rows, least=1) for place in (ROLLOUT, REFERENCE)
    )
    entropy = bool(settings.number(f"{ACTOR}.entropy_coeff", 0)) or settings.flag(
        f"{ACTOR}.calculate_entropy", False
    )
    dtype = "fsdp_config.model_dtype"
    return Training(
        nodes=settings.integer("trainer.nnodes", least=1),
        gpus_per_node=settings.integer("trainer.n_gpus_per_node", least=1),
        strategy=settings.choice(f"{ACTOR}.strategy", STRATEGIES, "fsdp"),
        fsdp_size=settings.integer(f"{FSDP}.fsdp_size", -1),
        ulysses=ulysses,
        weight_bytes=DTYPE_BYTES[settings.choice(f"{ACTOR}.{dtype}", tuple(DTYPE_BYTES), "fp32")],
        param_offload=settings.flag(f"{FSDP}.param_offload", False),
        optimizer_offload=settings.flag(f"{FSDP}.optimizer_offload", False),
        offload_policy=settings.flag(f"{FSDP}.offload_policy", False),
        reshard=settings.flag(f"{FSDP}.reshard_after_forward", True),
        no_sync=settings.flag(f"{FSDP}.use_no_sync_for_gradient_accumulation", False),
        checkpointing=settings.flag(f"{MODEL}.enable_gradient_checkpointing", True),
        activation_offload=settings.flag(f"{MODEL}.enable_activation_offload", False),
        fused=settings.flag(f"{MODEL}.use_fused_kernels", False),
        remove_padding=settings.flag(f"{MODEL}.use_remove_padding", True),
        attention=str(settings.value(f"{MODEL}.override_config.attn_implementation", "flash_attention_2")),
        eager_entropy=not (
            settings.flag(f"{FSDP}.use_torch_compile", True)
            or settings.flag(f"{FSDP}.entropy_from_logits_with_chunking", False)
        ),
        update_entropy=entropy,
        temperature_one=settings.number(f"{ROLLOUT}.temperature", 1.0) == 1.0,
        update_tokens=update,
        log_prob_tokens=log_prob,
        reference_tokens=of_reference,
        dynamic=dynamic,
        old_log_prob=not settings.flag("algorithm.rollout_correction.bypass_mode", False),
        reference=reference,
        reference_bytes=DTYPE_BYTES[
            settings.choice(f"{REFERENCE}.fsdp_config.model_dtype", tuple(DTYPE_BYTES), "fp32")
        ],
        critic=settings.value("algorithm.adv_estimator", "gae") == "gae",
    )


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
        max_model_len=settings.optional_integer(f"{ROLLOUT}.max_model_len"),
        weight_bytes=DTYPE_BYTES[settings.choice(f"{ROLLOUT}.dtype", tuple(DTYPE_BYTES), "bfloat16")],
        bucket_mb=settings.integer(
            f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", 2048, least=1
        ),
        on_training_gpus=not separate or settings.flag("actor_rollout_ref.hybrid_engine", True),
        sleeps=settings.flag(f"{ROLLOUT}.free_cache_engine", True),
        switches=separate and settings.flag("trainer.v1.separate_async.hybrid_rollout.enable_switch", False),
        backend=str(settings.value(f"{ROLLOUT}.checkpoint_engine.backend", "naive")),
    )
