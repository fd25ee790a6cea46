"""Memory of a training GPU, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.setup import GIB, Setup
from pv_runs.plan.tokens import padding

__all__ = [
    "Part",
    "Phase",
    "activations",
    "gathered",
    "kept_while_generating",
    "log_prob_logits",
    "training_phases",
    "update_logits",
]


@dataclass(frozen=True)
class Part:
    """Something that takes memory."""

    name: str
    gib: float
    how: str
    """The formula with its numbers put in; bytes unless it says GiB."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What is in the memory of one place at the same time."""

    place: str
    """`training GPU`, `rollout GPU` or `rollout engine`."""
    name: str
    """When this is: `update`, `log-probs`, ..."""
    parts: tuple[Part, ...]
    available_gib: float

    @property
    def gib(self) -> float:
        """Sum of the parts."""
        return sum(part.gib for part in self.parts)

    @property
    def over_gib(self) -> float:
        """GiB that are missing; 0 where it fits."""
        return max(0.0, self.gib - self.available_gib)

    @property
    def largest(self) -> Part:
        """The part that takes most."""
        return max(self.parts, key=lambda part: part.gib)


def training_phases(setup: Setup) -> tuple[Phase, ...]:
    """Update, Adam's step and log-probs.

    verl's `param_offload` and `optimizer_offload` bring everything back to the GPU for as long as a phase that needs it
    runs (`BaseEngineCtx._context_switch`, verl/workers/engine/base.py): an update has weights, gradients and Adam's
    states on the GPU whatever they say. They free memory for the log-probs and for a rollout on the same GPU.
    """
    training = setup.training
    weights, gradients = _shard(setup, "weights", 1), _shard(setup, "gradients", 1)
    adam, always = _shard(setup, "Adam", 2), _always(setup)
    coming = (gathered(setup, True), activations(setup, training.update_tokens, True), update_logits(setup))
    asked = (training.log_prob_tokens,) * training.old_log_prob + (
        training.reference_tokens,
    ) * training.reference
    # Nothing is kept for a backward: the logits come when the layers' values have gone.
    largest = max(activations(setup, max(asked, default=0), False), log_prob_logits(setup), key=_gib)
    inferring = (gathered(setup, False), largest)
    update = (weights, gradients, adam, *coming, _lost(setup, coming), *always)
    # AdamW of torch makes a temporary as large as the weights (foreach); on the host nothing of it is here.
    adam_step = (weights, gradients, adam, _shard(setup, "Adam's temporaries", 1), *always)
    log_probs = [weights, *([] if training.optimizer_offload else [adam]), *inferring]
    phases = [("update", update), ("Adam's step", adam_step)]
    if training.old_log_prob or training.reference:
        phases.append(("log-probs", (*log_probs, _lost(setup, inferring), *always)))
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
    return _present((*parts, _context(setup), *_reference(setup)))


def _shard(setup: Setup, name: str, values: int) -> Part:
    """`values N b / S` bytes; 0 on the GPU with `offload_policy`."""
    training, parameters = setup.training, setup.model.parameters
    if training.stays_on_host:
        return Part(name, 0.0, "in the host's memory (offload_policy)")
    each = values * training.weight_bytes
    how = f"{each} x {parameters:.4g} / {training.shards}"
    return Part(name, each * parameters / training.shards / GIB, how)


def _gib(part: Part) -> float:
    return part.gib


def _lost(setup: Setup, parts: tuple[Part, ...]) -> Part:
    share, total = setup.assumed.fragmentation, sum(part.gib for part in parts)
    return Part("fragmentation", share * total, f"{share:g} x {total:.1f} GiB")


def _context(setup: Setup) -> Part:
    return Part("CUDA context, NCCL", setup.assumed.context_gib, "assumed GiB")


def _always(setup: Setup) -> tuple[Part, ...]:
    """The context, a reference model that stays on the GPU, and what a rollout engine on the same GPU keeps.

    That is its whole share without `free_cache_engine`.
    """
    rollout, memory = setup.rollout, setup.cluster.gpu.memory_gib
    always = (_context(setup), *_reference(setup))
    if not rollout.on_training_gpus:
        return always
    if not rollout.sleeps:
        share = rollout.utilization * memory
        how = f"{rollout.utilization:g} x {memory:g} GiB (free_cache_engine is off)"
        return (*always, Part("rollout engine's share", share, how))
    sleeping = setup.assumed.sleeping_rollout_gib
    return (*always, Part("sleeping rollout engine", sleeping, "assumed GiB"))


def _reference(setup: Setup) -> tuple[Part, ...]:
    """The reference model in bf16 on one GPU, which FSDP does not take from there when it has been built.

    It was measured so; in fp32, and with several GPUs by the same code, its weights are on the host.
    """
    training = setup.training
    if (
        not training.reference
        or training.strategy != "fsdp"
        or training.gpus > 1
        or training.reference_bytes > 2
    ):
        return ()
    count = setup.model.parameters
    return (Part("reference model", 2 * count / GIB, f"2 x {count:.4g}, one GPU in bf16"),)


def _present(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.gib > 0)


COMPUTE_BYTES = 2
"""Of a value while it is computed with: verl's mixed precision is bf16."""
CHUNK = 512
"""Tokens of a chunk of verl's fused log-probs (verl/utils/experimental/torch_functional.py)."""
FUSED_BYTES = 14
"""Of a logit in such a chunk: itself in bf16, and in fp32 itself, its probability and its gradient."""


def gathered(setup: Setup, backward: bool) -> Part:
    """Weights that FSDP has gathered, whole, and in the backward their gradients before they are scattered.

    `2 (R + 2 F)` bytes of weights: the root's unit of R (both matrices of the vocabulary), the layer of F that computes
    and the next one that is fetched. In the backward `2 R` of the root's gradients and `6 F` of a layer's, in bf16 and
    for the sum in fp32. All N are gathered without `reshard_after_forward`. Gradients of all N stay on each GPU with
    `use_no_sync_for_gradient_accumulation`, in bf16 (fsdp) or fp32 (fsdp2).
    """
    model, training = setup.model, setup.training
    root, layer = model.vocabulary_parameters, model.layer_parameters
    weights = root + 2 * layer if training.reshard or not backward else model.parameters
    total, how = COMPUTE_BYTES * weights, f"2 x {weights:.4g}"
    if backward and training.no_sync:
        whole = 2 if training.strategy == "fsdp" else 4
        total += whole * model.parameters
        how += f" + {whole} x {model.parameters:.4g} of whole gradients"
    elif backward:
        total += 2 * root + 6 * layer
        how += f" + 2 x {root:.4g} + 6 x {layer:.4g} of gradients"
    return Part("gathered weights" + " and gradients" * backward, total / GIB, how)


def activations(setup: Setup, tokens: int, backward: bool) -> Part:
    """What is kept of the forward; padding counts as tokens.

    A layer keeps `W = 2 (8 H + 3 (A + K) + 4 I)` bytes a token: inputs of both norms and their fp32 copies, queries,
    keys, values and the attention's output, and the four products of the MLP (after arXiv 2205.05198, for a gated MLP,
    grouped queries and flash attention, which keeps no matrix of scores). Its backward adds `4 I` of gradients.

    With gradient checkpointing: `2 L T H`, the input of each of the L layers, and one layer's `T (W + 4 I)`. Without:
    `L T W`. Forward alone: `2 T (4 I + H)`, the products of one layer's MLP and its input.
    """
    model, training = setup.model, setup.training
    tokens = round(tokens * padding(setup, tokens))
    hidden, inner, layers = model.hidden_size, model.intermediate_size, model.num_hidden_layers
    layer = COMPUTE_BYTES * (8 * hidden + 3 * (model.query_width + model.key_width) + 4 * inner)
    if not backward:
        layer = COMPUTE_BYTES * (4 * inner + hidden)
        return Part("activations", tokens * layer / GIB, f"{tokens:,} x {layer:,}, one layer")
    layer_backward = layer + 2 * COMPUTE_BYTES * inner
    if not training.checkpointing:
        total, how = layers * tokens * layer, f"{layers} x {tokens:,} x {layer:,}, no checkpointing"
    else:
        kept = 1 if training.activation_offload else layers
        total = tokens * (kept * COMPUTE_BYTES * hidden + layer_backward)
        how = f"{kept} x 2 x {tokens:,} x {hidden:,} + {tokens:,} x {layer_backward:,}, one layer"
    return Part("activations", total / GIB, how)


def update_logits(setup: Setup) -> Part:
    """Logits of an update's micro-batch, `T V b` bytes; T is already divided by the sequence parallel size.

    b is 2 for the logits in bf16, as autocast makes them, and 2 for the copy that is divided by the temperature, unless
    that is 1. flash-attn's cross entropy turns them into gradients in place. Without flash-attn the log-softmax keeps 4
    more, in fp32 (`logprobs_from_logits_v2`). An entropy in the loss takes 6 more: its softmax in fp32, and gradients
    that cannot be in place (verl/workers/engine/fsdp/transformer_impl.py).
    """
    training = setup.training
    each = 2 if training.temperature_one else 4
    each += 0 if training.remove_padding else 4
    each += 6 if training.update_entropy else 0
    return _logits(setup, training.update_tokens, each)


def log_prob_logits(setup: Setup) -> Part:
    """Logits of a micro-batch of old log-probs, whose entropy verl always computes.

    As in an update; but nothing is kept for a backward, so without flash-attn one row is in fp32 at a time. The entropy
    takes 8 bytes more where it is neither compiled nor in chunks (`entropy_from_logits`).
    """
    training = setup.training
    each = 2 if training.temperature_one else 4
    each += 8 if training.eager_entropy and training.old_log_prob else 0
    return _logits(setup, training.log_prob_tokens, each)


def _logits(setup: Setup, tokens: int, each: int) -> Part:
    vocabulary = setup.model.vocab_size
    tokens = round(tokens * padding(setup, tokens))
    if setup.training.fused:
        tokens, each = min(tokens, CHUNK), FUSED_BYTES
    return Part(
        "logits",
        tokens * vocabulary * each / GIB,
        f"{tokens:,} x {vocabulary:,} x {each}" + ", one chunk" * setup.training.fused,
    )
