"""What runs in a rank: verl's actor worker on the CPU, and a record of the gradient of each update."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist
import verl.trainer.ppo.core_algos as core_algos
import verl.utils.torch_dtypes
import verl.workers.engine_workers as engine_workers
import verl.workers.utils.losses as losses
from hydra import compose, initialize_config_module
from omegaconf import DictConfig, OmegaConf
from tensordict import TensorDict
from transformers import AutoConfig
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.model import get_hf_auto_model_class

from grid.cases import Case, Update
from grid.driver import Driver
from grid.oracle import Row

DTYPES = {"float32": "fp32", "float64": "fp64"}


@dataclass
class Actor:
    """The actor of one dtype, with a record of what it did."""

    config: DictConfig
    worker: Any
    settings: Any
    """verl's FSDPActorConfig, as the config has it."""
    cuts: list[list[int]] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)


@functools.cache
def build_config(model_folder: str, dtype: str) -> DictConfig:
    """verl's own trainer config on pv-cpu's cluster, in a dtype, with a learning rate of 0."""
    engine = "actor_rollout_ref.actor.fsdp_config"
    overrides = [
        "hydra.searchpath=[pkg://pv_cpu.hydra_configs]",
        "+cluster=cpu",
        "algorithm.adv_estimator=grpo",
        f"actor_rollout_ref.model.path={model_folder}",
        "actor_rollout_ref.rollout.n=1",
        "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=true",
        "actor_rollout_ref.actor.optim.lr=0.0",
        "actor_rollout_ref.actor.optim.weight_decay=0.0",
        f"{engine}.model_dtype={DTYPES[dtype]}",
        *(f"{engine}.mixed_precision.{part}_dtype={DTYPES[dtype]}" for part in ("param", "reduce", "buffer")),
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=overrides)
    OmegaConf.set_struct(config, False)
    return config


def prepare(model_folder: str) -> None:
    """What all ranks would do alike, to be done once before they are forked."""
    import torch.distributed.checkpoint.state_dict  # noqa: F401

    teach_verl_float64()
    core_algos.register_adv_est("given")(given_advantages)
    for dtype in DTYPES:
        build_config(model_folder, dtype)
    get_hf_auto_model_class(AutoConfig.from_pretrained(model_folder))  # imports a hundred configs


def teach_verl_float64() -> None:
    """Let verl's configs name float64. Nothing else of verl is changed for it: its worker then keeps it throughout."""
    precision = verl.utils.torch_dtypes.PrecisionType
    original = precision.to_dtype
    precision.to_dtype = staticmethod(lambda name: torch.float64 if name == "fp64" else original(name))


def given_advantages(token_level_rewards: torch.Tensor, response_mask: torch.Tensor, **_: Any) -> Any:
    """An estimator of verl's registry for rows that have advantages already: a row's reward is its advantage."""
    advantages = token_level_rewards.sum(dim=-1, keepdim=True) * response_mask
    return advantages, advantages


def build_actor(model_folder: str, dtype: str) -> Actor:
    """`ActorRolloutRefWorker` in the role of the actor."""
    config = build_config(model_folder, dtype)
    worker = engine_workers.ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
    worker.init_model()
    engine = worker.actor.engine
    engine._autocast_dtype = torch.float32  # what verl itself takes to mean: no autocast
    settings = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    return Actor(config=config, worker=worker, settings=settings)


def watch(actor: Actor) -> Actor:
    """Keep the gradient of each of its updates, and the rows."""
    engine = actor.worker.actor.engine
    forward_step, optimizer_step = engine.forward_step, engine.optimizer_step

    def watched_forward_step(micro_batch, loss_function, forward_only):
        actor.cuts.append(micro_batch["row_id"].values().tolist())
        return forward_step(micro_batch, loss_function, forward_only)

    def watched_optimizer_step():
        cuts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(cuts, list(actor.cuts))
        rows = [row for rank in cuts for micro_batch in rank for row in micro_batch if row >= 0]
        actor.updates.append(Update(gradient=full_gradient(engine.module), rows=rows, cuts=cuts))
        actor.cuts.clear()
        return optimizer_step()

    engine.forward_step, engine.optimizer_step = watched_forward_step, watched_optimizer_step
    return actor


def full_gradient(module: torch.nn.Module) -> torch.Tensor:
    """(parameters,) gathered from all ranks."""
    parts = []
    for parameter in module.parameters():
        gradient = parameter.grad
        gradient = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
        parts.append(gradient.reshape(-1).to(torch.float64))
    return torch.cat(parts)


def configure(actor: Actor, case: Case) -> None:
    """The case as a user would write it into a verl config, and as `ActorRolloutRefWorker.init_model` passes it on."""
    settings = replace(
        actor.settings,
        loss_agg_mode=case.spec,
        loss_scale_factor=case.longest if case.fixed_width else None,
        policy_loss=replace(actor.settings.policy_loss, loss_mode=case.loss.policy),
        clip_ratio_low=case.loss.clip_low,
        clip_ratio_high=case.loss.clip_high,
        clip_ratio_c=case.loss.clip_c,
        use_kl_loss=case.loss.kl is not None,
        kl_loss_type=case.loss.kl or "low_var_kl",
        kl_loss_coef=case.loss.kl_coef,
        entropy_coeff=case.loss.entropy_coeff,
        ppo_mini_batch_size=case.rows_of_a_mini_batch,
        use_dynamic_bsz=case.micro_rows is None,
        ppo_micro_batch_size_per_gpu=case.micro_rows,
        ppo_max_token_len_per_gpu=case.micro_tokens,
        shuffle=case.shuffle,
        ppo_epochs=case.epochs,
    )
    engine = actor.worker.actor.engine_config
    engine.use_dynamic_bsz = settings.use_dynamic_bsz
    engine.max_token_len_per_gpu = settings.ppo_max_token_len_per_gpu
    engine.micro_batch_size_per_gpu = settings.ppo_micro_batch_size_per_gpu
    actor.worker.set_loss_fn(functools.partial(engine_workers.ppo_loss, config=settings))
    # What the trainer reads of it.
    for name in ("loss_agg_mode", "entropy_coeff", "ppo_mini_batch_size", "shuffle", "ppo_epochs"):
        actor.config.actor_rollout_ref.actor[name] = getattr(settings, name)


def run_case(
    actor: Actor, case: Case, rows: list[Row], scores: list[float], *, local: bool
) -> tuple[list[Update], dict[int, torch.Tensor]]:
    """The updates of one step, and the advantages that verl computed for its rows."""
    configure(actor, case)
    actor.config.algorithm.adv_estimator = "grpo" if rows[0].advantages.isnan().any() else "given"
    actor.updates.clear()
    actor.cuts.clear()

    def update(data: TensorDict) -> TensorDict:
        return actor.worker.update_actor(data)

    driver = Driver(actor.config, dist.get_rank(), dist.get_world_size(), update)
    before = [parameter.detach().clone() for parameter in actor.worker.actor.engine.module.parameters()]
    with local_normaliser() if local else contextlib.nullcontext():
        advantages = driver.step(rows, scores, balance=case.balance, is_weights=case.is_weights)
    after = actor.worker.actor.engine.module.parameters()
    assert all(map(torch.equal, before, after)), "the learning rate is 0, yet the model has moved"
    return list(actor.updates), advantages


@contextlib.contextmanager
def local_normaliser() -> Iterator[None]:
    """The mistake that the grid is there to find: each micro-batch is divided by its own tokens."""
    real = core_algos.agg_loss

    def local(
        loss_mat, loss_mask, loss_agg_mode, dp_size=1, batch_num_tokens=None, global_batch_size=None, **rest
    ):
        totals = {"batch_num_tokens": batch_num_tokens, "global_batch_size": global_batch_size}
        real(loss_mat, loss_mask, loss_agg_mode, dp_size, **totals, **rest)  # counted, as the adapter asks
        mean = (loss_mat * loss_mask).sum() / loss_mask.sum().clamp(min=1)
        return mean * dp_size * len(loss_mat) / global_batch_size

    core_algos.agg_loss = losses.agg_loss = local
    try:
        yield
    finally:
        core_algos.agg_loss = losses.agg_loss = real
