"""What comes and goes on a training GPU while it computes: gathered weights, activations, logits."""

from __future__ import annotations

from pv_runs.plan.parts import Part
from pv_runs.plan.setup import GIB, Setup

__all__ = ["activations", "gathered", "log_prob_logits", "update_logits"]

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
    return Part(name="gathered weights" + " and gradients" * backward, gib=total / GIB, how=how)


def activations(setup: Setup, tokens: int, backward: bool) -> Part:
    """What is kept of the forward.

    A layer keeps `W = 2 (8 H + 3 (A + K) + 4 I)` bytes a token: inputs of both norms and their fp32 copies, queries,
    keys, values and the attention's output, and the four products of the MLP (after arXiv 2205.05198, for a gated MLP,
    grouped queries and flash attention, which keeps no matrix of scores). Its backward adds `4 I` of gradients.

    With gradient checkpointing: `2 L T H`, the input of each of the L layers, and one layer's `T (W + 4 I)`. Without:
    `L T W`. Forward alone: one layer's `T W`.
    """
    model, training = setup.model, setup.training
    hidden, inner, layers = model.hidden_size, model.intermediate_size, model.num_hidden_layers
    layer = COMPUTE_BYTES * (8 * hidden + 3 * (model.query_width + model.key_width) + 4 * inner)
    if not backward:
        return Part(name="activations", gib=tokens * layer / GIB, how=f"{tokens:,} x {layer:,}, one layer")
    layer_backward = layer + 2 * COMPUTE_BYTES * inner
    if not training.checkpointing:
        total, how = layers * tokens * layer, f"{layers} x {tokens:,} x {layer:,}, no checkpointing"
    else:
        kept = 1 if training.activation_offload else layers
        total = tokens * (kept * COMPUTE_BYTES * hidden + layer_backward)
        how = f"{kept} x 2 x {tokens:,} x {hidden:,} + {tokens:,} x {layer_backward:,}, one layer"
    return Part(name="activations", gib=total / GIB, how=how)


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
    if setup.training.fused:
        tokens, each = min(tokens, CHUNK), FUSED_BYTES
    return Part(
        name="logits",
        gib=tokens * vocabulary * each / GIB,
        how=f"{tokens:,} x {vocabulary:,} x {each}" + ", one chunk" * setup.training.fused,
    )
