"""How the actor is trained: verl's FSDP engine."""

from __future__ import annotations

from dataclasses import dataclass

from pv_rl.errors import ConfigError
from pv_runs.plan.settings import Settings

__all__ = ["BYTES", "Training", "read_training"]

BYTES = {"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "half": 2}
"""Of a value, by the names that verl takes (verl/utils/torch_dtypes.py)."""
ACTOR = "actor_rollout_ref.actor"
FSDP = f"{ACTOR}.fsdp_config"
MODEL = "actor_rollout_ref.model"
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
    """`use_remove_padding`, which needs flash-attn."""
    eager_entropy: bool
    """Neither compiled nor in chunks: the entropy of the old log-probs makes whole copies of the logits."""
    update_entropy: bool
    """The update computes the entropy too (`entropy_coeff`, `calculate_entropy`)."""
    temperature_one: bool
    """At temperature 1 verl scales no logits, and makes no copy of them."""
    update_tokens: int
    """Tokens of a micro-batch on one GPU, of an update."""
    log_prob_tokens: int
    """Tokens of a micro-batch on one GPU, of old and reference log-probs."""
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
    def gpus(self) -> int:
        """That train."""
        return self.nodes * self.gpus_per_node

    @property
    def shards(self) -> int:
        """GPUs that share one copy of the weights."""
        return self.fsdp_size if 0 < self.fsdp_size < self.gpus else self.gpus

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
        raise ConfigError(
            f"{MODEL}.lora_rank is set; the plan knows training of all weights alone, so plan by hand"
        )
    ulysses = max(
        settings.integer(f"{ACTOR}.ulysses_sequence_parallel_size", 1, least=1),
        settings.integer(f"{FSDP}.ulysses_sequence_parallel_size", 1, least=1),
    )
    dynamic = settings.flag(f"{ACTOR}.use_dynamic_bsz")
    rollout, rows = "actor_rollout_ref.rollout", -(-longest // ulysses)
    if dynamic:
        update = settings.integer(f"{ACTOR}.ppo_max_token_len_per_gpu", least=1)
        log_prob = settings.integer(f"{rollout}.log_prob_max_token_len_per_gpu", update, least=1)
    else:
        update = rows * settings.integer(f"{ACTOR}.ppo_micro_batch_size_per_gpu", least=1)
        log_prob = rows * settings.integer(
            f"{rollout}.log_prob_micro_batch_size_per_gpu", update // rows, least=1
        )
    entropy = bool(settings.number(f"{ACTOR}.entropy_coeff", 0)) or settings.flag(
        f"{ACTOR}.calculate_entropy", False
    )
    return Training(
        nodes=settings.integer("trainer.nnodes", least=1),
        gpus_per_node=settings.integer("trainer.n_gpus_per_node", least=1),
        strategy=settings.choice(f"{ACTOR}.strategy", STRATEGIES, "fsdp"),
        fsdp_size=settings.integer(f"{FSDP}.fsdp_size", -1),
        ulysses=ulysses,
        weight_bytes=BYTES[settings.choice(f"{FSDP}.model_dtype", tuple(BYTES), "fp32")],
        param_offload=settings.flag(f"{FSDP}.param_offload", False),
        optimizer_offload=settings.flag(f"{FSDP}.optimizer_offload", False),
        offload_policy=settings.flag(f"{FSDP}.offload_policy", False),
        reshard=settings.flag(f"{FSDP}.reshard_after_forward", True),
        no_sync=settings.flag(f"{FSDP}.use_no_sync_for_gradient_accumulation", False),
        checkpointing=settings.flag(f"{MODEL}.enable_gradient_checkpointing", True),
        activation_offload=settings.flag(f"{MODEL}.enable_activation_offload", False),
        fused=settings.flag(f"{MODEL}.use_fused_kernels", False),
        remove_padding=settings.flag(f"{MODEL}.use_remove_padding", True),
        eager_entropy=not (
            settings.flag(f"{FSDP}.use_torch_compile", True)
            or settings.flag(f"{FSDP}.entropy_from_logits_with_chunking", False)
        ),
        update_entropy=entropy,
        temperature_one=settings.number(f"{rollout}.temperature", 1.0) == 1.0,
        update_tokens=update,
        log_prob_tokens=log_prob,
        dynamic=dynamic,
        old_log_prob=not settings.flag("algorithm.rollout_correction.bypass_mode", False),
        reference=reference,
        reference_bytes=BYTES[
            settings.choice("actor_rollout_ref.ref.fsdp_config.model_dtype", tuple(BYTES), "fp32")
        ],
        critic=settings.value("algorithm.adv_estimator", "gae") == "gae",
    )
