"""What a training node keeps in its host's memory."""

from __future__ import annotations

import math

from pv_runs.plan.parts import Part
from pv_runs.plan.setup import GIB, Setup

__all__ = ["host_parts"]


def host_parts(setup: Setup) -> tuple[Part, ...]:
    """Parts of one node, the sum over its GPUs.

    - the reference model, which verl's FSDP engine always keeps there (`CPUOffload` for `forward_only`,
      verl/workers/engine/fsdp/transformer_impl.py), in its own `model_dtype`;
    - what is offloaded: weights, gradients, Adam's states, inputs of layers;
    - in separate_async a copy of the policy for old log-probs, and one more with several updates a sync
      (`_compute_old_log_prob`, verl/trainer/ppo/v1/trainer_separate_async.py);
    - while it starts, the whole model, in the process that reads it; in each where the embeddings are tied.
    """
    model, training, batch = setup.model, setup.training, setup.batch
    each, gpus, count = training.weight_bytes, training.gpus_per_node, model.parameters
    share = gpus / training.shards
    stays = training.offload_policy and training.strategy == "fsdp2"
    copies = (1 + (batch.sync_step > 1)) if batch.separate and training.old_log_prob else 0
    inputs = training.activation_offload and training.checkpointing
    parts = (
        ("reference model", training.reference, (training.reference_bytes, count, share)),
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
        Part(name=name, gib=math.prod(factors) / GIB, how=" x ".join(f"{factor:,.4g}" for factor in factors))
        for name, there, factors in parts
        if there
    )
