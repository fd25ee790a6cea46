"""Assumed numbers: what no config says and only a run can measure."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT

__all__ = ["Assumed"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Assumed:
    """The settings of the config's node `plan`, all but `model`."""

    response_tokens: float = Field(default=778.0, gt=0)
    """Mean tokens of a response. The paper's 112M generated tokens over 300 steps of 480 responses."""
    prompt_tokens: float = Field(default=1500.0, gt=0)
    """Mean tokens of a prompt: a problem, a proof and the instructions."""
    length_sigma: float = Field(default=1.0, gt=0, le=3)
    """Standard deviation of the logarithm of a response's length. 1: of 480 responses the longest is some 13 means."""
    dataset_size: int | None = Field(default=None, ge=1)
    """Prompts of the training set. Without it, the plan prints no epochs."""
    train_mfu: float = Field(default=0.55, gt=0, le=1)
    """Share of the GPU's bf16 peak that products of matrices reach in training, recomputation counted as work."""
    attention_mfu: float = Field(default=0.33, gt=0, le=1)
    """The same of attention by a flash kernel, over the causal half of the pairs."""
    masked_attention_mfu: float = Field(default=0.06, gt=0, le=1)
    """The same of torch's attention with a mask (`attn_implementation: sdpa` and rows of several lengths)."""
    layer_token_us: float = Field(default=0.25, ge=0)
    """Microseconds that a layer takes for a token beside those products: norms, rotations, copies, launches."""
    prefill_mfu: float = Field(default=0.55, gt=0, le=1)
    """Share of the GPU's bf16 peak that the rollout reaches while it reads prompts."""
    decode_bandwidth_fraction: float = Field(default=0.6, gt=0, le=1)
    """Share of the memory bandwidth that decoding reaches, tensor parallel communication included."""
    decode_step_s: float = Field(default=0.004, ge=0)
    """Seconds that a decoding step takes at least: scheduling, launching, sampling. It dominates with small models."""
    step_overhead_s: float = Field(default=5.0, ge=0)
    """Seconds of a step that no GPU computes in: Ray, the transfer queue, polling, metrics."""
    gather_gb_s: float = Field(default=200.0, gt=0)
    """GB/s at which FSDP gathers weights and scatters gradients, on every GPU at once: half of what NVLink within nodes
    and a 400 Gb/s adapter a GPU between them can give. Far less on nodes with one adapter."""
    host_link_gb_s: float = Field(default=50.0, gt=0)
    """GB/s between a GPU and pinned memory of its host."""
    pin_gb_s: float = Field(default=0.7, gt=0)
    """GB/s at which the first step pins the reference model's weights in the host's memory."""
    sync_gb_s: float = Field(default=10.0, gt=0)
    """GB/s at which new weights, in the rollout's dtype, reach all of the rollout."""
    context_gib: float = Field(default=1.5, ge=0)
    """GiB that a process holds on its GPU whatever it computes: CUDA context, kernels, NCCL buffers."""
    sleeping_rollout_gib: float = Field(default=3.0, ge=0)
    """GiB that a rollout engine which sleeps keeps on a training GPU: its context, NCCL, CUDA graphs."""
    rollout_working_gib: float = Field(default=5.0, ge=0)
    """GiB of a rollout GPU, within gpu_memory_utilization, for activations, sampling and CUDA graphs."""
    fragmentation: float = Field(default=0.1, ge=0, le=1)
    """Share that the allocator loses on top of what comes and goes: gathered weights, activations, logits."""
    judge_output_tokens: float = Field(default=60.0, gt=0)
    """Mean tokens of a judge's answer."""
    judge_latency_s: float = Field(default=5.0, ge=0)
    """Seconds that an answer of the judge takes."""
    characters_per_token: float = Field(default=4.0, gt=0)
    """Of the judge's instructions, which are not tokenized here."""
    usd_per_gpu_hour: float | None = Field(default=None, ge=0)
    """Price of a GPU for an hour. Without it, the plan prints GPU hours alone."""
