"""The model that the engine decodes with: built from its configuration, filled by weight sync."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from pv_cpu.errors import UnsupportedOnCpuError, WeightSyncError
from pv_cpu.rollout import attention

__all__ = ["build", "decoding_threads", "end_of_sequence", "load_weights"]

THREADS_VARIABLE = "PV_CPU_ROLLOUT_THREADS"
SMALL_MODEL = 20_000_000
"""Parameters. A guess between 0.8 million, which was measured, and 135 million."""

DTYPES = {
    "float32": torch.float32, "fp32": torch.float32, "float": torch.float32,
    "bfloat16": torch.bfloat16, "bf16": torch.bfloat16,
}  # fmt: skip


def _check_layers(config: PretrainedConfig, max_model_len: int) -> None:
    """The engine's masks are causal and nothing else."""
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    window = getattr(config, "sliding_window", None)
    if kinds == {"sliding_attention"} and window and window >= max_model_len:
        return
    if kinds:
        raise UnsupportedOnCpuError(
            f"{config.model_type} has layers of the kinds {sorted(kinds)}; rollout.name=pv_cpu implements "
            f"full attention, and a sliding window (here {window}) only if it covers "
            f"max_model_len={max_model_len}. Use a model with full attention"
        )
    if hasattr(config, "vision_config"):
        raise UnsupportedOnCpuError(
            f"{config.model_type} takes images; rollout.name=pv_cpu generates from text only"
        )


def build(config: PretrainedConfig, dtype: str, max_model_len: int) -> PreTrainedModel:
    """A causal language model with random weights, in evaluation mode."""
    if dtype not in DTYPES:
        raise UnsupportedOnCpuError(
            f"actor_rollout_ref.rollout.dtype={dtype!r} is not supported; use one of {', '.join(DTYPES)}"
        )
    _check_layers(config, max_model_len)
    config = copy.deepcopy(config)  # from_config writes the attention's name into it
    model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype], attn_implementation=attention.NAME)
    return model.eval().requires_grad_(False)


def decoding_threads(model: torch.nn.Module) -> int:
    """Threads for a model of this size: with passive waiting (see ``environment``) small ones want one.

    0.8 million parameters on 2 cores: 12,300 to 15,000 tokens a second with one thread and 9,500 to
    13,500 with two, because a step is hundreds of operations of some microseconds each.
    ``PV_CPU_ROLLOUT_THREADS`` overrides the choice.
    """
    asked = os.environ.get(THREADS_VARIABLE)
    if asked is not None:
        if not asked.isdecimal() or int(asked) < 1:
            raise UnsupportedOnCpuError(
                f"{THREADS_VARIABLE}={asked!r} is not a positive whole number; unset it to let pv-cpu choose"
            )
        return int(asked)
    small = sum(parameter.numel() for parameter in model.parameters()) < SMALL_MODEL
    return 1 if small else torch.get_num_threads()


def end_of_sequence(*configs: object) -> frozenset[int]:
    """The end-of-sequence ids of the first configuration that names any."""
    for config in configs:
        ids = getattr(config, "eos_token_id", None)
        if ids is not None:
            return frozenset([ids] if isinstance(ids, int) else ids)
    return frozenset()


def _shown(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def load_weights(model: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Copy the trainer's weights in, all of them or none.

    A tensor that is tied to another (``lm_head.weight`` and the embedding) needs to come once.
    """
    own = model.state_dict()
    unexpected = weights.keys() - own.keys()
    arrived = {own[name].data_ptr() for name in weights.keys() & own.keys()}
    missing = {name for name, tensor in own.items() if tensor.data_ptr() not in arrived}
    misshapen = {
        f"{name} {tuple(weights[name].shape)} instead of {tuple(own[name].shape)}"
        for name in weights.keys() & own.keys()
        if weights[name].shape != own[name].shape
    }
    problems = [
        f"{what}: {_shown(names)}"
        for what, names in (
            ("never arrived", missing), ("unknown to the rollout model", unexpected), ("shape", misshapen),
        )
        if names
    ]  # fmt: skip
    if problems:
        raise WeightSyncError(
            f"{len(weights)} weights were sent and none was loaded. " + "; ".join(problems) + ". "
            "Trainer and rollout must have the same architecture; adapters need model.lora.merge=True"
        )
    with torch.no_grad():
        for name, tensor in weights.items():
            own[name].copy_(tensor)
