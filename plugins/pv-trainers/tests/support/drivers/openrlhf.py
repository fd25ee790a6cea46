"""OpenRLHF: its experience maker, replay buffer and `ActorPPOTrainer.ppo_train`, with gloo in the place of NCCL.

Not its own: the forward passes and the generation on other workers (a row's stored log-probabilities are given), and
DeepSpeed, of which `Strategy` does what the gradient depends on: each backward by the number of accumulated ones, and a
mean over ranks. deepspeed, vllm and flash_attn are stubs, so packing is not run.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import torch.distributed as dist
from grid.cases import Case
from stubs import stubbed
from torch import Tensor
from trainer_grid import Step, beside
from transformers import PreTrainedModel

with stubbed("deepspeed", "flash_attn", "vllm"):
    beside("openrlhf-0.11.2")
    from openrlhf.models import Actor
    from openrlhf.trainer.ppo_utils import balance_experiences
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
    from openrlhf.trainer.ray import ppo_actor
    from openrlhf.utils.deepspeed import DeepspeedStrategy

    from pv_trainers.openrlhf import weigh

NAME = "OpenRLHF"
VERSION = "0.11.2"
OWN = {"token-mean": "dapo@batch", "seq-mean-token-mean": "grpo@batch"}
DEFAULT = "token-mean"
CANNOT = {"uneven groups": "every prompt has rollout.n_samples_per_prompt responses"}

Updates = list[tuple[list[int], Tensor]]
"""Rows of the step and (parameters,) gradient of each update."""


def gradients(model: PreTrainedModel, step: Step, mode: str) -> list[Tensor]:
    """As `trainer_grid.Driver.gradients`; OpenRLHF computes log-probabilities in float32."""
    return [gradient for _, gradient in run_updates(model, step, mode)]


def run_updates(model: PreTrainedModel, step: Step, mode: str) -> Updates:
    """As `gradients`, with the rows of each update, over all ranks."""
    case = step.case
    args = make_args(case, "seq-mean-token-mean" if mode not in OWN else mode)
    experiences = make_maker(step, args, mode).make_experience_batch(make_samples(step, mode not in OWN))
    if args.train.dynamic_batch_enable:
        experiences = balance_experiences(experiences, args)
    share = -(-len(experiences) // case.ranks)  # as RayActorGroup.async_run_method_batch cuts them
    shares = [experiences[start : start + share] for start in range(0, len(experiences), share)]
    if case.ranks == 1:
        return train(model, args, case, shares[0], 0, dist.HashStore())
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=_rank, args=(model, args, case, shares[rank], rank, Path(folder)))
            for rank in range(case.ranks)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(120)
        updates = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(case.ranks)]
    return [([*first, *second], gradient) for (first, gradient), (second, _) in zip(*updates, strict=True)]


def _rank(model, args, case: Case, experiences, rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), case.ranks)
    torch.save(train(model, args, case, experiences, rank, store), folder / f"{rank}.pt")


def make_args(case: Case, loss_agg_mode: str) -> SimpleNamespace:
    """The settings that a run has, as `openrlhf.cli.train_ppo_ray` nests them."""
    loss, rows, samples = case.loss, len(case.lengths), len(case.groups[0])
    space = SimpleNamespace
    return space(
        actor=space(
            num_nodes=1, num_gpus_per_node=case.ranks, eps_clip_low_high=(loss.clip_low, loss.clip_high),
            dual_clip=loss.clip_c, loss_agg_mode=loss_agg_mode, aux_loss_coef=0.0, entropy_coef=None,
            policy_loss_type={"vanilla": "ppo"}.get(loss.policy, loss.policy),
        ),
        algo=space(
            kl=space(use_loss=bool(loss.kl), init_coef=loss.kl_coef, unbiased_gradient=False,
                     estimator={"low_var_kl": "k3", "mse": "k2", "kl": "k1"}.get(loss.kl, loss.kl)),
            advantage=space(estimator="dr_grpo", gamma=1.0, no_std_norm=True, is_correction_level="off",
                            is_correction_mode="mask", is_correction_gating="ratio",
                            is_correction_threshold=[0.5, 5.0]),
        ),
        ds=space(ring_attn_size=1, tensor_parallel_size=1, packing_samples=False),
        reward=space(clip_range=(-10, 10), overlong_buffer_len=None, stop_properly_penalty_coef=None),
        rollout=space(batch_size=rows // samples, n_samples_per_prompt=samples, micro_batch_size=1,
                      max_tokens_per_gpu=case.micro_tokens),
        train=space(batch_size=case.mini_rows or rows, max_epochs=1, max_tokens_per_gpu=case.micro_tokens,
                    dynamic_batch_enable=case.micro_rows is None, colocate_all=False, async_enable=False),
        vllm=space(sync_backend="gloo"),
    )  # fmt: skip


def make_samples(step: Step, abstains: bool) -> list:
    """The responses of the vLLM engines, as OpenRLHF makes samples of them.

    Args:
        abstains: whether a row that does not count has tokens and no reward; else it has no action token.
    """
    samples = []
    for number, row in enumerate(step.rows):
        counts = bool(row.mask.any())
        mask = row.mask if counts or not abstains else torch.ones_like(row.mask)
        acts = [False, *map(bool, mask.tolist()), False]
        edges = [len(row.prompt) + i for i in range(len(acts) - 1) if acts[i] != acts[i + 1]]
        reward = float(row.advantages[0]) if counts or not abstains else float("nan")
        response = {
            "prompt": str(number),
            "label": "",
            "observation_tokens": [*row.prompt.tolist(), *row.response.tolist()],
            "action_ranges": list(zip(edges[::2], edges[1::2], strict=True)),
            "rollout_log_probs": None,
            "reward": reward,
            "scores": reward,
        }
        samples.append(SamplesGenerator._process_response_into_experience(None, response, max_len=100_000))
    return samples


class Maker(RemoteExperienceMaker):
    """Without the workers' forward passes."""

    rows: Sequence

    def make_experience(self, samples_list: list) -> list:
        for sample in samples_list:
            for name, stored in (
                ("action_log_probs", "old_log_probs"),
                ("base_action_log_probs", "ref_log_probs"),
            ):
                values = torch.zeros(sample.action_mask.shape)
                for row, number in zip(values, map(int, sample.prompts), strict=True):
                    start = len(self.rows[number].prompt) - 1
                    given = getattr(self.rows[number], stored)
                    row[start : start + len(given)] = given
                setattr(sample, name, values * sample.action_mask)
            sample.kl = torch.zeros(sample.action_mask.shape)
        return samples_list


def make_maker(step: Step, args: SimpleNamespace, mode: str) -> Maker:
    """The experience maker, with the mode if it is one of ours."""
    tokenizer, strategy = SimpleNamespace(pad_token_id=0), SimpleNamespace(args=args)
    maker = Maker(None, None, None, None, SimpleNamespace(value=args.algo.kl.init_coef), strategy, tokenizer)
    maker.rows = step.rows
    if mode not in OWN:
        weigh(maker, mode)
    return maker


class Strategy:
    """What `DeepspeedStrategy` does to the gradient."""

    ring_attn_group = None

    def __init__(self, args: SimpleNamespace, micro_rows: int, ranks: int) -> None:
        self.args, self.world_size, self.rows, self.updates = args, ranks, [], []
        self.dynamic = args.train.dynamic_batch_enable
        self.accumulated_gradient = args.train.batch_size // micro_rows // ranks
        self.ds_device_mesh = {"dp": SimpleNamespace(get_group=lambda: None)}
        self.calls = 0

    def backward(self, loss: Tensor, actor: Actor, optimizer: object) -> None:
        (loss / (1 if self.dynamic else self.accumulated_gradient)).backward()

    def optimizer_step(self, optimizer: object, actor: Actor, *_: object, **__: object) -> None:
        self.calls += 1
        if not self.dynamic and self.calls % self.accumulated_gradient:
            return
        gradient = torch.cat([parameter.grad.reshape(-1) for parameter in actor.model.parameters()])
        self.updates.append((self.rows, self.all_reduce(gradient)))
        self.rows = []
        actor.model.zero_grad()

    def all_reduce(self, data: object, op: str = "mean") -> object:
        if dist.is_initialized():
            data = DeepspeedStrategy.all_reduce(self, data, op)
        if isinstance(data, dict):  # metrics, of which a micro-batch without an action token divides by zero
            data["_num_action_tokens"] = max(data["_num_action_tokens"], 1e-9)
        return data

    def get_grad_norm(self, actor: Actor) -> float:
        return 0.0

    def is_rank_0(self) -> bool:
        return False


class Cpu(str):
    """A device that `f"cuda:{device}"` can be made of."""

    def __format__(self, spec: str) -> str:
        return "0"


def train(
    model: PreTrainedModel, args: SimpleNamespace, case: Case, experiences, rank: int, store
) -> Updates:
    """One rank: `ActorPPOTrainer.ppo_train` on its share of the experiences, at fixed parameters."""
    strategy = Strategy(args, case.micro_rows or 1, case.ranks)
    actor = Actor(model)
    actor.packing_samples = False
    model.zero_grad()
    if case.ranks > 1 or strategy.dynamic:
        dist.init_process_group("gloo", store=store, rank=rank, world_size=case.ranks)
    try:
        with (
            mock.patch("torch.cuda.current_device", return_value=Cpu("cpu")),
            mock.patch.object(ppo_actor, "torch_dist_barrier_and_cuda_sync"),
            nullcontext() if case.shuffle else mock.patch.object(ppo_actor, "DataLoader", _in_order),
        ):
            scheduler = SimpleNamespace(get_last_lr=lambda: [0.0])
            trainer = ppo_actor.ActorPPOTrainer(
                strategy, actor, None, None, scheduler,
                micro_train_batch_size=case.micro_rows or 1, dataloader_pin_memory=False,
            )  # fmt: skip
            step = trainer.training_step
            trainer.training_step = lambda experience, *rest: (
                strategy.rows.extend(map(int, experience.prompts)),
                step(experience, *rest),
            )[1]
            for experience in experiences:
                trainer.replay_buffer.append(experience)
            trainer.ppo_train(args.algo.kl.init_coef)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return strategy.updates


def _in_order(*args: object, **settings: object) -> torch.utils.data.DataLoader:
    return torch.utils.data.DataLoader(*args, **{**settings, "shuffle": False})
