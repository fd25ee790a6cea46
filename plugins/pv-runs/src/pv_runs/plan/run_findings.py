"""Findings about a run's settings: what verl refuses or treats differently, and what the plan omits."""

from __future__ import annotations

from collections.abc import Iterator

from pv_runs.plan.finding import Finding
from pv_runs.plan.setup import Setup

__all__ = ["run_findings", "weighting_findings"]

ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"


def run_findings(setup: Setup) -> tuple[Finding, ...]:
    """All of them, in the order of a step."""
    return (*_batch(setup), *_rows(setup), *_memory_settings(setup), *_left_out(setup))


def weighting_findings(setup: Setup, loss_agg_mode: object) -> Iterator[Finding]:
    """How large an update is, where its mass is far from 1. A mode of verl's own divides in its own way.

    Raises:
        LossModeError: the mode cannot be read.
    """
    from pv_rl.losses.mass import expected_remark
    from pv_rl.losses.mode import find_mode

    mode, batch = find_mode(loss_agg_mode), setup.batch
    if mode is None:
        return
    tokens = round(setup.assumed.response_tokens)
    where = f"at responses of {tokens:,} tokens (plan.response_tokens)"
    remark = expected_remark(mode, batch.prompts, batch.n, (tokens,), where)
    if remark is not None:
        yield Finding(severity="warning", text=remark)


def _batch(setup: Setup) -> Iterator[Finding]:
    """verl/trainer/ppo/v1/trainer_separate_async.py asserts the first two."""
    batch = setup.batch
    if batch.separate and batch.prompts != batch.sync_step * batch.mini_batch:
        yield Finding(
            severity="does not run",
            text=f"data.train_batch_size is {batch.prompts}; separate_async wants parameter_sync_step x "
            f"ppo_mini_batch_size = {batch.sync_step} x {batch.mini_batch} = {batch.sync_step * batch.mini_batch}",
            overrides=(f"{ACTOR}.ppo_mini_batch_size={max(1, batch.prompts // batch.sync_step)}",),
        )
    if batch.separate and setup.rollout.backend == "naive":
        yield Finding(
            severity="does not run",
            text="checkpoint_engine.backend is naive, which cannot bring weights to other GPUs",
            overrides=(f"{ROLLOUT}.checkpoint_engine.backend=nccl",),
        )
    if batch.steps is None:
        yield Finding(
            severity="note",
            text="trainer.total_training_steps is not set: the run's length follows from its data (plan.dataset_size)",
        )


def _rows(setup: Setup) -> Iterator[Finding]:
    """verl/workers/rollout/vllm_rollout/vllm_async_server.py has the rules of lengths."""
    batch, rollout, made_for = setup.batch, setup.rollout, setup.model.max_position_embeddings
    asked = rollout.max_model_len or made_for
    if made_for is not None and (rollout.max_model_len or 0) > made_for:
        yield Finding(
            severity="does not run",
            text=f"{ROLLOUT}.max_model_len is {rollout.max_model_len:,} and the model is made for {made_for:,} tokens",
            overrides=(f"{ROLLOUT}.max_model_len={made_for}",),
        )
    if asked is not None and asked < batch.longest:
        yield Finding(
            severity="warning",
            text=f"max_model_len is {asked:,}, and prompt and response may have {batch.max_prompt:,} + "
            f"{batch.max_response:,} = {batch.longest:,}: responses to long prompts are cut short, or refused",
            overrides=(f"{ROLLOUT}.max_model_len={batch.longest}",) if asked == rollout.max_model_len else (),
        )
    if not rollout.chunked_prefill and rollout.max_batched_tokens < (asked or batch.longest):
        yield Finding(
            severity="warning",
            text="without chunked prefill a prompt has to fit in max_num_batched_tokens, "
            f"{rollout.max_batched_tokens:,}: verl raises it to {asked or batch.longest:,}, which takes more "
            "memory than is counted here",
            overrides=(f"{ROLLOUT}.enable_chunked_prefill=True",),
        )


def _memory_settings(setup: Setup) -> Iterator[Finding]:
    training = setup.training
    if training.offload_policy and training.strategy != "fsdp2":
        yield Finding(
            severity="warning",
            text=f"offload_policy does nothing with {ACTOR}.strategy fsdp",
            overrides=(f"{ACTOR}.strategy=fsdp2",),
        )
    if setup.batch.separate and setup.rollout.on_training_gpus:
        yield Finding(
            severity="note",
            text="verl keeps rollout engines on the training GPUs too (hybrid_engine). They generate until the first "
            "update and in validations; then they sleep: weights and KV cache are thrown away, a few GiB stay. "
            "Without them verl 0.9.1 needs VERL_LOGGING_LEVEL=WARNING: a line of its log fails",
            overrides=("actor_rollout_ref.hybrid_engine=False",),
        )
    if training.offload_policy and training.strategy == "fsdp2":
        yield Finding(
            severity="note", text="with offload_policy Adam runs on the host's CPUs; its time is not counted"
        )
    elif training.optimizer_offload or training.param_offload:
        yield Finding(
            severity="note",
            text="param_offload and optimizer_offload bring weights and Adam's states back to the GPU while an update "
            "runs, so they lower nothing of its memory, only that of the other phases",
        )


def _left_out(setup: Setup) -> Iterator[Finding]:
    if setup.training.critic:
        yield Finding(
            severity="warning",
            text="adv_estimator gae trains a critic too, which is not counted: add about as much again",
            overrides=("algorithm.adv_estimator=grpo",),
        )
    if not setup.training.remove_padding:
        yield Finding(
            severity="note",
            text="use_remove_padding is off; padding takes memory and time that are not counted",
        )
    if setup.rollout.switches:
        yield Finding(
            severity="note",
            text="training GPUs that are lent to generation (hybrid_rollout) are not counted in its time",
        )
    if setup.training.ulysses > setup.model.num_key_value_heads:
        yield Finding(
            severity="note",
            text="there are more GPUs to a row than key-value heads; the copies are not counted",
        )
