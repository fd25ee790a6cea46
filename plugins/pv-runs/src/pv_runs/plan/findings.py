"""Findings: what stops a run, what is likely to surprise, and what the plan leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pv_runs.plan.engines import ACTOR, FSDP, MODEL, REFERENCE, ROLLOUT
from pv_runs.plan.memory import Memory
from pv_runs.plan.setup import Setup
from pv_runs.plan.step_time import forward_work
from pv_runs.plan.tokens import padding

__all__ = [
    "Finding",
    "Severity",
    "cluster_findings",
    "division_findings",
    "memory_findings",
    "note",
    "run_findings",
    "stops",
    "warning",
    "weighting_findings",
]

Severity: TypeAlias = Literal["does not fit", "does not run", "warning", "note"]
"""`does not fit`: memory. `does not run`: verl or vLLM stops with an error. `warning`: it runs, and hardly as meant."""
TIGHT = 0.9
"""Share of the memory above which an estimate like this one says little."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One of them."""

    severity: Severity
    text: str
    overrides: tuple[str, ...] = ()
    """What helps, as arguments of the command line."""


def stops(text: str, *overrides: str) -> Finding:
    """Verl or vLLM stops with an error."""
    return Finding(severity="does not run", text=text, overrides=overrides)


def warning(text: str, *overrides: str) -> Finding:
    """The run starts, and does not do what was meant."""
    return Finding(severity="warning", text=text, overrides=overrides)


def note(text: str, *overrides: str) -> Finding:
    """Something to know."""
    return Finding(severity="note", text=text, overrides=overrides)


def cluster_findings(setup: Setup) -> Iterator[Finding]:
    """What the cluster does not have."""
    cluster = setup.cluster
    there = cluster.nodes * cluster.gpus_per_node
    said = f"{cluster.nodes} x {cluster.gpus_per_node} = {there}"
    if setup.gpus > there:
        yield stops(f"the run takes {setup.gpus} GPUs and the cluster has {said}")
    elif setup.gpus < there:
        yield note(f"the run takes {setup.gpus} GPUs of the {said} that the cluster has")
    widest = max(setup.training.gpus_per_node, setup.rollout.gpus_per_node)
    if widest > cluster.gpus_per_node:
        yield stops(
            f"the run takes {widest} GPUs of a node, and one has {cluster.gpus_per_node} (cluster.gpus_per_node)"
        )


def division_findings(setup: Setup) -> tuple[Finding, ...]:
    """What cannot be divided as the config says; verl or vLLM stops with an error."""
    return (*_training_division(setup), *_rollout_division(setup))


def _training_division(setup: Setup) -> Iterator[Finding]:
    """verl/models/transformers/monkey_patch.py has the rule of heads."""
    model, training, batch = setup.model, setup.training, setup.batch
    ulysses, heads, keys = training.ulysses, model.num_attention_heads, model.num_key_value_heads
    size = f"{ACTOR}.ulysses_sequence_parallel_size"
    if heads % ulysses or (keys % ulysses and ulysses % keys):
        yield stops(
            f"{heads} heads and {keys} key-value heads cannot be shared by {ulysses} GPUs ({size}): it has to "
            "divide the heads, and divide the key-value heads or be a multiple of them"
        )
    if training.gpus % ulysses:
        yield stops(f"{training.gpus} training GPUs are no multiple of {size} {ulysses}", f"{size}=1")
    if ulysses > 1 and not training.remove_padding:
        yield stops(
            f"{size} is {ulysses}, which needs use_remove_padding", f"{MODEL}.use_remove_padding=True"
        )
    if training.gpus % training.shards:
        text = f"{training.gpus} training GPUs are no multiple of fsdp_size {training.fsdp_size}"
        yield stops(text, f"{FSDP}.fsdp_size=-1")
    rows = batch.mini_batch * batch.n
    if rows % training.data_parallel:
        yield stops(
            f"an update has {batch.mini_batch} x {batch.n} = {rows} rows, no multiple of the {training.data_parallel} "
            "data parallel groups (verl/workers/engine_workers.py)"
        )
    if training.strategy == "fsdp2" and training.fused and not model.tie_word_embeddings:
        yield stops(
            "use_fused_kernels reads the output layer's weights, which strategy fsdp2 shards apart where they are not "
            "the input's (tie_word_embeddings): the first forward fails (apply_fsdp2, verl/utils/fsdp_utils.py)",
            f"{ACTOR}.strategy=fsdp",
        )
    caps = (
        (f"{ACTOR}.ppo", training.update_tokens),
        (f"{ROLLOUT}.log_prob", training.log_prob_tokens),
        (
            f"{REFERENCE}.log_prob",
            training.reference_tokens if training.reference else training.update_tokens,
        ),
    )
    for name, cap in caps:
        key = f"{name}_max_token_len_per_gpu"
        follows = name != f"{ACTOR}.ppo" and cap == training.update_tokens  # then one change is enough
        if training.dynamic and not follows and cap * ulysses < batch.longest:
            yield stops(
                f"a row can have {batch.longest:,} tokens and {key} leaves {cap:,} x {ulysses} = {cap * ulysses:,}: "
                "it cannot be trained (verl/utils/seqlen_balancing.py)",
                f"{key}={-(-batch.longest // ulysses)}",
            )


def _rollout_division(setup: Setup) -> Iterator[Finding]:
    """verl/workers/rollout/replica.py and vLLM's own rules."""
    model, rollout, training = setup.model, setup.rollout, setup.training
    size, name = rollout.tensor_parallel, f"{ROLLOUT}.tensor_model_parallel_size"
    heads, keys = model.num_attention_heads, model.num_key_value_heads
    if heads % size or model.intermediate_size % size or (keys % size and size % keys):
        yield stops(
            f"{heads} heads, {keys} key-value heads and {model.intermediate_size} columns of the MLP cannot be shared "
            f"by {size} GPUs ({name}): it has to divide the first and the last, and divide the second or be a multiple"
        )
    pools = [rollout.gpus] + [training.gpus] * (setup.batch.separate and rollout.on_training_gpus)
    for gpus in pools:
        if gpus % rollout.replica_gpus:
            text = f"{gpus} GPUs are no multiple of the {rollout.replica_gpus} of a replica ({name})"
            yield stops(text, f"{name}=1")
    narrow, wide = sorted((rollout.gpus_per_node, rollout.replica_gpus))
    if wide % narrow:
        yield stops(
            f"replicas of {rollout.replica_gpus} GPUs do not fill nodes of {rollout.gpus_per_node} ({name})"
        )
    if not 0 < rollout.utilization <= 1:
        key = f"{ROLLOUT}.gpu_memory_utilization"
        yield stops(f"{key} is {rollout.utilization:g}; it is a share, above 0 and at most 1", f"{key}=0.8")


def run_findings(setup: Setup) -> tuple[Finding, ...]:
    """About settings, in the order of a step."""
    return (*_batch(setup), *_lengths(setup), *_memory_settings(setup), *_left_out(setup))


def _batch(setup: Setup) -> Iterator[Finding]:
    """verl/trainer/ppo/v1/trainer_separate_async.py asserts the first two."""
    batch = setup.batch
    if batch.separate and batch.prompts != batch.sync_step * batch.mini_batch:
        yield stops(
            f"data.train_batch_size is {batch.prompts}; separate_async wants parameter_sync_step x "
            f"ppo_mini_batch_size = {batch.sync_step} x {batch.mini_batch} = {batch.sync_step * batch.mini_batch}",
            f"{ACTOR}.ppo_mini_batch_size={max(1, batch.prompts // batch.sync_step)}",
        )
    if batch.separate and setup.rollout.backend == "naive":
        text = "checkpoint_engine.backend is naive, which cannot bring weights to other GPUs"
        yield stops(text, f"{ROLLOUT}.checkpoint_engine.backend=nccl")
    if batch.steps is None:
        yield note(
            "trainer.total_training_steps is not set: the run's length follows from its data (plan.dataset_size)"
        )


def _lengths(setup: Setup) -> Iterator[Finding]:
    """verl/workers/rollout/vllm_rollout/vllm_async_server.py has the rules of lengths."""
    batch, rollout, made_for = setup.batch, setup.rollout, setup.model.max_position_embeddings
    asked = rollout.max_model_len or made_for
    key = f"{ROLLOUT}.max_model_len"
    if made_for is not None and (rollout.max_model_len or 0) > made_for:
        yield stops(
            f"{key} is {rollout.max_model_len:,} and the model is made for {made_for:,} tokens",
            f"{key}={made_for}",
        )
    if asked is not None and asked < batch.longest:
        yield warning(
            f"max_model_len is {asked:,}, and prompt and response may have {batch.max_prompt:,} + "
            f"{batch.max_response:,} = {batch.longest:,}: responses to long prompts are cut short, or refused",
            *([f"{key}={batch.longest}"] if asked == rollout.max_model_len else []),
        )
    if not rollout.chunked_prefill and rollout.max_batched_tokens < (asked or batch.longest):
        yield warning(
            "without chunked prefill a prompt has to fit in max_num_batched_tokens, "
            f"{rollout.max_batched_tokens:,}: verl raises it to {asked or batch.longest:,}, which takes more "
            "memory than is counted here",
            f"{ROLLOUT}.enable_chunked_prefill=True",
        )


def _memory_settings(setup: Setup) -> Iterator[Finding]:
    training = setup.training
    if training.offload_policy and not training.stays_on_host:
        text = f"offload_policy does nothing with {ACTOR}.strategy fsdp"
        yield warning(text, f"{ACTOR}.strategy=fsdp2")
    if setup.batch.separate and setup.rollout.on_training_gpus:
        yield note(
            "verl keeps rollout engines on the training GPUs too (hybrid_engine). They generate until the first "
            "update and in validations; then they sleep: weights and KV cache are thrown away, a few GiB stay. "
            "Without them verl 0.9.1 needs VERL_LOGGING_LEVEL=WARNING: a line of its log fails",
            "actor_rollout_ref.hybrid_engine=False",
        )
    if training.stays_on_host:
        yield note("with offload_policy Adam runs on the host's CPUs; its time is not counted")
    elif training.optimizer_offload or training.param_offload:
        yield note(
            "param_offload and optimizer_offload bring weights and Adam's states back to the GPU while an update "
            "runs, so they lower nothing of its memory, only that of the other phases"
        )


def _left_out(setup: Setup) -> Iterator[Finding]:
    training = setup.training
    if training.critic:
        text = "adv_estimator gae trains a critic too, which is not counted: add about as much again"
        yield warning(text, "algorithm.adv_estimator=grpo")
    if (padded := padding(setup, training.update_tokens)) > 1.05:
        text = "use_remove_padding is off: rows of a micro-batch are all as long as its longest, which makes an update"
        yield note(f"{text} compute {padded:.2g} times the tokens")
    if (work := forward_work(setup, training.update_tokens)).masked:
        assumed = setup.assumed
        slow, fast = work.attention / assumed.masked_attention_mfu, work.attention / assumed.attention_mfu
        rest = work.matrices / assumed.train_mfu
        yield note(
            f"attn_implementation is {training.attention}, whose mask keeps torch's flash kernel out: attention takes "
            f"{slow / rest:.2g} times as long as the products of matrices, {fast / rest:.2g} with a flash kernel",
            f"{MODEL}.external_lib=pv_runs.attention",
            f"++{MODEL}.override_config.attn_implementation=unmasked",
        )
    if setup.rollout.switches:
        yield note("training GPUs that are lent to generation (hybrid_rollout) are not counted in its time")
    if training.ulysses > setup.model.num_key_value_heads:
        yield note("there are more GPUs to a row than key-value heads; the copies are not counted")


def weighting_findings(setup: Setup, loss_agg_mode: object) -> Iterator[Finding]:
    """How large an update is, where its mass is far from 1. A mode of verl's own divides in its own way.

    Raises:
        LossModeError: the mode cannot be read.
    """
    from pv_rl.losses.mode import find_mode
    from pv_runs.mass import expected_remark

    mode, batch = find_mode(loss_agg_mode), setup.batch
    if mode is None:
        return
    tokens = round(setup.assumed.response_tokens)
    where = f"at responses of {tokens:,} tokens (plan.response_tokens)"
    remark = expected_remark(mode, batch.prompts, batch.n, (tokens,), where)
    if remark is not None:
        yield warning(remark)


def memory_findings(setup: Setup, memory: Memory, remedy: tuple[str, ...]) -> Iterator[Finding]:
    """What does not fit on the GPUs and on the host, what is tight, and responses that queue for the KV cache.

    Args:
        setup: the run.
        memory: what it takes.
        remedy: overrides with which it fits; empty where none are known.
    """
    for phase in memory.phases:
        text = (
            f"{phase.place}, {phase.name}: {phase.gib:.0f} GiB of {phase.available_gib:.0f}, most of it "
            f"{phase.largest.name} ({phase.largest.gib:.0f} GiB)"
        )
        if phase.over_gib:
            yield Finding(severity="does not fit", text=text, overrides=remedy)
        elif phase.place != "rollout engine" and phase.gib > TIGHT * phase.available_gib:
            less = f"{ROLLOUT}.gpu_memory_utilization={setup.rollout.utilization - 0.1:.2g}"
            yield warning(f"{text}: too near to call", *([less] if phase.name == "generation" else []))
    known = memory.host_available_gib
    if known is not None and memory.host_gib > known:
        text = f"a training node needs {memory.host_gib:.0f} GiB of its host's memory and has {known:.0f}"
        yield Finding(severity="does not fit", text=text, overrides=remedy)
    replicas, concurrent = setup.rollout.replicas, memory.kv_cache.concurrent
    if replicas and concurrent:
        responses = setup.batch.rollouts * (1 + setup.batch.warmup) / replicas
        if responses > concurrent:
            yield note(
                f"a replica has up to {responses:.0f} responses in flight and generates {concurrent} of mean length "
                "at a time; the others queue"
            )
