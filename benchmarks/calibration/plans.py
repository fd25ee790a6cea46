"""The product's config and plan of a case: `run=8b` on one GPU without flash-attn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibration.cases import Case, Group

from pv_runs.plan import Plan, make_plan
from pv_runs.recipes import compose

MODEL, ROLLOUT = "actor_rollout_ref.model", "actor_rollout_ref.rollout"
BF16 = tuple(f"actor_rollout_ref.{role}.fsdp_config.model_dtype=bf16" for role in ("actor", "ref"))
H200 = (
    "cluster.gpu.name=H200",
    "cluster.gpu.memory_gib=139.8",
    "cluster.gpu.bf16_tflops=989",
    "cluster.gpu.bandwidth_tb_s=4.8",
)
NO_FLASH_ATTENTION = (
    f"{MODEL}.use_remove_padding=false",
    f"{MODEL}.use_fused_kernels=true",
    f"+{MODEL}.override_config.attn_implementation=sdpa",
)
ONE_GPU = (
    *("cluster=gpu1", *H200, *NO_FLASH_ATTENTION),
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size=1",
)
SHARE = 0.6
"""`gpu_memory_utilization` of the cases that measure vLLM alone."""
RANDOM_WEIGHTS = f"{MODEL}.external_lib=calibration.random_weights"
GRAPHS = (
    f"+{ROLLOUT}.engine_kwargs.vllm.compilation_config={{mode: 0, cudagraph_mode: FULL_DECODE_ONLY}}",
    f"{ROLLOUT}.cudagraph_capture_sizes=[1,8,16,24,32,64]",
)
"""CUDA graphs of the batches that come, without compilation, which would take a minute of each start."""
CPU = tuple(
    f"++actor_rollout_ref.{role}.{name}"
    for role in ("actor", "ref")
    for name in (
        "strategy=fsdp2",
        "use_torch_compile=false",
        "fsdp_config.strategy=fsdp2",
        "fsdp_config.use_torch_compile=false",
        *(f"fsdp_config.mixed_precision.{part}_dtype=fp32" for part in ("param", "reduce", "buffer")),
    )
)
"""What `cluster=cpu` sets of the training engine; the plan refuses that cluster itself."""


def case_config(group: Group, case: Case, model: Path, cpu: bool = False) -> Any:
    """The composed config. The plan's lengths are those of the rows."""
    pairs = case.lengths()
    prompts, responses = ([pair[place] for pair in pairs] for place in (0, 1))
    mean = sum(responses) / len(responses)
    longest = max(max(responses), round(mean) + 1)
    return compose(
        "8b",
        [
            *("trainer_mode=sync", "judge=rules", *ONE_GPU, RANDOM_WEIGHTS, *(CPU if cpu else ())),
            "actor_rollout_ref.actor.optim.total_training_steps=100",
            f"model_path={model}",
            "data_dir=none",
            f"data.train_batch_size={len(pairs)}",
            f"{ROLLOUT}.n=1",
            f"data.max_prompt_length={max(prompts)}",
            f"data.max_response_length={longest}",
            f"{ROLLOUT}.max_model_len={max(prompts) + longest}",
            f"actor_rollout_ref.actor.ppo_max_token_len_per_gpu={case.micro}",
            f"{MODEL}.use_remove_padding={str(case.packed).lower()}",
            f"++{MODEL}.override_config.attn_implementation={case.attention}",
            f"++plan.prompt_tokens={sum(prompts) / len(prompts)}",
            f"++plan.response_tokens={mean * 0.9999}",
            f"++plan.length_sigma={case.sigma or 0.001}",
            *group.overrides,
        ],
    )


def case_plan(config: Any) -> Plan:
    return make_plan(config)


def seconds(plan: Plan) -> dict[str, float]:
    """By the plan's names."""
    return {one.name: one.seconds for one in (*plan.time.generation, *plan.time.training)}


def phase_gib(plan: Plan, name: str, without: tuple[str, ...]) -> float | None:
    """GiB of a training GPU in a phase, without some of its parts; None: the plan has no such phase."""
    for phase in plan.memory.phases:
        if phase.place == "training GPU" and phase.name == name:
            return sum(part.gib for part in phase.parts if part.name not in without)
    return None
