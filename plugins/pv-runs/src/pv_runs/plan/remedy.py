"""Remedy: the settings that make a run fit in memory, found by a greedy search over known changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pv_runs.plan.engines import ACTOR, FSDP, MODEL, ROLLOUT
from pv_runs.plan.findings import division_findings
from pv_runs.plan.memory import Memory, memory_of
from pv_runs.plan.setup import Setup

__all__ = ["CHANGES", "Change", "Remedy", "find_remedy"]

ROUNDS = 24
LEAST_GIB = 0.01
"""That a change has to save."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A setup with something changed."""

    setup: Setup
    overrides: dict[str, str]
    """Key and value, as on the command line."""


Changer: TypeAlias = Callable[[Setup], "Change | None"]
"""None: there is nothing to change."""
Engine: TypeAlias = Literal["training", "rollout"]


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Changes together."""

    overrides: tuple[str, ...]
    """As arguments of the command line."""
    fits: bool
    """Whether the run fits with them. If not, they are the best that was found."""
    over_gib: float
    """GiB that are missing with them."""
    gpus: int
    """That the run takes with them."""
    host_gib: float
    """GiB of a training node's host that it then needs."""
    fullest: float
    """Share of its memory that the fullest phase then takes; near 1 it is too near to call."""


def find_remedy(setup: Setup) -> Remedy | None:
    """Greedily: of `CHANGES` the first that saves memory where it is missing, and again, until the run fits.

    At the end, each change that is not needed is taken back. None: the run fits as it is.
    """
    if memory_of(setup).fits:
        return None
    taken: list[Changer] = []
    for _ in range(ROUNDS):
        changer = _next(setup, taken)
        if changer is None:
            break
        taken.append(changer)
        if _apply(setup, taken)[1].fits:
            break
    if _apply(setup, taken)[1].fits:
        for changer in tuple(taken):
            fewer = [one for one in taken if one is not changer]
            if _apply(setup, fewer)[1].fits:
                taken = fewer
    changed, memory, overrides = _apply(setup, taken)
    return Remedy(
        overrides=tuple(f"{key}={value}" for key, value in overrides.items()),
        fits=memory.fits,
        over_gib=memory.over_gib,
        gpus=changed.gpus,
        host_gib=memory.host_gib,
        fullest=max(phase.gib / phase.available_gib for phase in memory.phases),
    )


def _next(setup: Setup, taken: Sequence[Changer]) -> Changer | None:
    """The first that helps and leaves nothing that cannot be divided and could be before."""
    now, memory, _ = _apply(setup, taken)
    undivided = len(division_findings(now))
    for changer in CHANGES:
        change = changer(now)
        if change is None or memory_of(change.setup).over_gib > memory.over_gib - LEAST_GIB:
            continue
        if len(division_findings(change.setup)) <= undivided:
            return changer
    return None


def _apply(setup: Setup, changers: Sequence[Changer]) -> tuple[Setup, Memory, dict[str, str]]:
    overrides: dict[str, str] = {}
    for changer in changers:
        change = changer(setup)
        if change is not None:
            setup, overrides = change.setup, {**overrides, **change.overrides}
    return setup, memory_of(setup), overrides


def _change(setup: Setup, engine: Engine, overrides: dict[str, str], **values: object) -> Change:
    """With other values of `Setup.training` or `Setup.rollout`."""
    part = replace(getattr(setup, engine), **values)
    return Change(setup=replace(setup, **{engine: part}), overrides=overrides)


def _turn_on(engine: Engine, field: str, key: str, value: bool = True) -> Changer:
    """A changer that sets `key` to True, which makes `field` of the engine `value`."""

    def change(setup: Setup) -> Change | None:
        if getattr(getattr(setup, engine), field) is value:
            return None
        return _change(setup, engine, {key: "True"}, **{field: value})

    return change


def _micro_batches(setup: Setup, ulysses: int) -> Change | None:
    """Micro-batches of no more than the longest row."""
    training = setup.training
    tokens = -(-setup.batch.longest // ulysses)
    now = (training.update_tokens, training.log_prob_tokens, training.reference_tokens)
    fewer = max(now) > tokens
    if not training.dynamic or (ulysses == training.ulysses and not fewer):
        return None
    overrides = {f"{ACTOR}.ppo_max_token_len_per_gpu": str(tokens)}
    if len(set(now)) > 1:  # else they follow from that of the actor
        overrides[f"{ROLLOUT}.log_prob_max_token_len_per_gpu"] = str(tokens)
        overrides["actor_rollout_ref.ref.log_prob_max_token_len_per_gpu"] = str(tokens)
    if ulysses != training.ulysses:
        overrides[f"{ACTOR}.ulysses_sequence_parallel_size"] = str(ulysses)
    values = {"ulysses": ulysses, "update_tokens": tokens, "log_prob_tokens": tokens}
    values["reference_tokens"] = tokens
    return _change(setup, "training", overrides, **values)


def _small_micro_batches(setup: Setup) -> Change | None:
    """One row of the longest a micro-batch."""
    return _micro_batches(setup, setup.training.ulysses)


def _ulysses(setup: Setup) -> Change | None:
    """Twice the GPUs to a row, within a node, and half the tokens on each."""
    size = 2 * setup.training.ulysses
    return None if size > setup.training.gpus_per_node else _micro_batches(setup, size)


def _sharded(setup: Setup) -> Change | None:
    """No whole weights or gradients on a GPU."""
    if setup.training.reshard and not setup.training.no_sync and setup.training.fsdp_size == -1:
        return None
    overrides = {
        f"{FSDP}.reshard_after_forward": "True",
        f"{FSDP}.use_no_sync_for_gradient_accumulation": "False",
        f"{FSDP}.fsdp_size": "-1",
    }
    return _change(setup, "training", overrides, reshard=True, no_sync=False, fsdp_size=-1)


def _offload_policy(setup: Setup) -> Change | None:
    """Weights, gradients and Adam on the host for good; slow."""
    if setup.training.stays_on_host:
        return None
    overrides = {f"{ACTOR}.strategy": "fsdp2", f"{FSDP}.offload_policy": "True"}
    return _change(setup, "training", overrides, strategy="fsdp2", offload_policy=True)


def _more_nodes(setup: Setup) -> Change | None:
    """Twice the training nodes."""
    nodes = 2 * setup.training.nodes
    change = _change(setup, "training", {"trainer.nnodes": str(nodes)}, nodes=nodes)
    if setup.batch.separate:
        return change
    return replace(change, setup=_change(change.setup, "rollout", {}, nodes=nodes).setup)


def _larger_share(setup: Setup) -> Change | None:
    """More of the GPU for the rollout engine."""
    overrides = {f"{ROLLOUT}.gpu_memory_utilization": "0.9"}
    return _change(setup, "rollout", overrides, utilization=0.9) if setup.rollout.utilization < 0.9 else None


def _smaller_share(setup: Setup) -> Change | None:
    """Less of it, in steps of 0.05, where something else needs the room."""
    crowded = [p for p in memory_of(setup).phases if p.name == "generation" and p.place != "rollout engine"]
    over = max(phase.over_gib for phase in crowded) / setup.cluster.gpu.memory_gib
    steps = -int(-over // 0.05)
    share = round(setup.rollout.utilization - 0.05 * steps, 2)
    if not steps or share < 0.2:
        return None
    return _change(setup, "rollout", {f"{ROLLOUT}.gpu_memory_utilization": f"{share:g}"}, utilization=share)


def _tensor_parallel(setup: Setup) -> Change | None:
    """Twice the GPUs to a replica, within a node."""
    rollout = setup.rollout
    if 2 * rollout.replica_gpus > rollout.gpus_per_node:
        return None
    size = 2 * rollout.tensor_parallel
    return _change(
        setup, "rollout", {f"{ROLLOUT}.tensor_model_parallel_size": str(size)}, tensor_parallel=size
    )


def _no_sleeping_engines(setup: Setup) -> Change | None:
    """separate_async without engines on the training GPUs."""
    if not setup.batch.separate or not setup.rollout.on_training_gpus:
        return None
    return _change(setup, "rollout", {"actor_rollout_ref.hybrid_engine": "False"}, on_training_gpus=False)


CHANGES: tuple[Changer, ...] = (
    _turn_on("rollout", "sleeps", f"{ROLLOUT}.free_cache_engine"),
    _small_micro_batches,
    _turn_on("training", "fused", f"{MODEL}.use_fused_kernels"),
    _turn_on("training", "checkpointing", f"{MODEL}.enable_gradient_checkpointing"),
    _sharded,
    _turn_on("training", "eager_entropy", f"{ACTOR}.entropy_from_logits_with_chunking", value=False),
    _turn_on("training", "optimizer_offload", f"{FSDP}.optimizer_offload"),
    _turn_on("training", "param_offload", f"{FSDP}.param_offload"),
    _larger_share,
    _smaller_share,
    _tensor_parallel,
    _ulysses,
    _no_sleeping_engines,
    _turn_on("training", "activation_offload", f"{MODEL}.enable_activation_offload"),
    _offload_policy,
    _more_nodes,
)
"""In the order in which they are tried: those that cost least first."""
