"""SkyRL 0.3.0 on the CPU: its trainer from generated rows to advantages to mini-batches, and its FSDP worker's update.

SkyRL's own: `RayPPOTrainer.convert_to_training_input` and `_execute_training_step`, `MeshDispatch.stage_chunks`,
`PolicyWorkerBase.forward_backward`, its micro-batch iterators, `HFModelWrapper`, the policy losses and KL. Ours: the
workers' gradients are averaged over ranks, as FSDP does, and `flash_attn`'s two functions for packing are in torch.
Ray's object store, the device mesh and CUDA's current device are stubs.
"""

from __future__ import annotations

import contextlib
import sys
import types
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import typing_extensions
from grid.cases import Case
from grid.model import EOS
from trainer_grid import Step, beside
from transformers import PreTrainedModel

from pv_trainers.skyrl import Weighted

NAME = "SkyRL"
VERSION = "0.3.0"
DEFAULT = "token_mean"
OWN = {
    "token_mean": "dapo@batch",
    "prompt_mean": "dapo",
    "sequence_mean": "grpo@batch",
    "seq_mean_token_sum_norm": "dr_grpo:64@batch",
    "token_mean_legacy": "",
}
LONGEST = 64
"""trainer.algorithm.max_seq_len, for seq_mean_token_sum_norm."""

POLICY_LOSSES = {"vanilla": "dual_clip", "gspo": "gspo", "cispo": "cispo"}
KL = {"k1": "k1", "mse": "k2", "low_var_kl": "k3"}


def load() -> Any:
    """The modules of SkyRL that are used."""
    beside("skyrl-0.3.0")
    folder = Path(sys.prefix) / "beside" / "skyrl-0.3.0" / "skyrl-gym"  # a package of its own on PyPI
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    flash = {
        "flash_attn": types.ModuleType("flash_attn"),
        "flash_attn.bert_padding": types.ModuleType("bert_padding"),
    }
    flash["flash_attn.bert_padding"].__dict__.update(pad_input=pad_input, unpad_input=unpad_input)
    sys.modules.update(flash)
    # pydantic refuses typing's TypedDict before Python 3.12.
    with mock.patch.object(typing, "TypedDict", typing_extensions.TypedDict):
        from skyrl.backends.skyrl_train.distributed import dispatch
        from skyrl.backends.skyrl_train.utils import ppo_utils
        from skyrl.backends.skyrl_train.workers import model_wrapper, worker
        from skyrl.train import config, trainer
    for name in flash:  # transformers would take it for the real one
        del sys.modules[name]
    __import__("loguru").logger.disable("skyrl")
    modules = (config, dispatch, model_wrapper, ppo_utils, trainer, worker)
    return types.SimpleNamespace(**{module.__name__.rpartition(".")[2]: module for module in modules})


def unpad_input(rows: torch.Tensor, attention_mask: torch.Tensor) -> tuple[Any, ...]:
    """As flash_attn.bert_padding: (B, S, ...) to (tokens, ...), and where they were."""
    indices = attention_mask.flatten().nonzero().flatten()
    return rows.flatten(0, 1)[indices], indices, None, None, None


def pad_input(tokens: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int) -> torch.Tensor:
    """As flash_attn.bert_padding: the way back, with zeros."""
    rows = torch.zeros(batch * seqlen, *tokens.shape[1:], dtype=tokens.dtype)
    return rows.index_copy(0, indices, tokens).view(batch, seqlen, *tokens.shape[1:])


skyrl = load()


class Dispatch:
    """Stands for SkyRL's `WorkerDispatch`: gives each rank its chunk of a mini-batch, one after the other."""

    def __init__(self, workers: list[Any], model: PreTrainedModel) -> None:
        self.workers, self.model, self.gradients = workers, model, []

    def get_lcm_dp_size(self) -> int:
        return len(self.workers)

    def stage_data(self, model: str, data: Any, mini_batch_boundaries: Any) -> Any:
        return skyrl.dispatch.MeshDispatch.stage_chunks(len(self.workers), data, mini_batch_boundaries)

    def forward_backward_from_staged(self, model: str, chunks: list[Any]) -> Any:
        self.model.zero_grad()
        outputs = [worker.forward_backward(chunk) for worker, chunk in zip(self.workers, chunks, strict=True)]
        return outputs[0]

    def optim_step(self, model: str) -> None:
        """FSDP averages over ranks; here their gradients have added up."""
        gradients = [parameter.grad.reshape(-1).double() for parameter in self.model.parameters()]
        self.gradients.append(torch.cat(gradients) / len(self.workers))


class Strategy:
    """Stands for SkyRL's `FSDPStrategy`."""

    def backward(self, loss: torch.Tensor, model: Any, optimizer: Any) -> None:
        loss.backward()

    def all_reduce(self, metrics: Any, op: str, group: Any) -> Any:
        return metrics


def configure(case: Case, loss_reduction: str, pack: bool) -> Any:
    """The case as a user of SkyRL would write it."""
    sizes = {len(group) for group in case.groups}
    prompts = len(case.groups)
    per_mini_batch = prompts if case.mini_rows is None else case.mini_rows // max(sizes)
    if not per_mini_batch or prompts % per_mini_batch or (case.mini_rows and len(sizes) > 1):
        raise ValueError(f"{case}: the mini-batches of SkyRL have equally many prompts")
    cfg = skyrl.config.SkyRLTrainConfig()
    cfg.generator.inference_engine.enable_ray_prometheus_stats = False  # Ray is not started
    cfg.generator.n_samples_per_prompt = max(sizes)
    cfg.generator.step_wise_trajectories = len(sizes) > 1  # else SkyRL asserts that groups are of one size
    cfg.trainer.train_batch_size = prompts
    cfg.trainer.policy_mini_batch_size = per_mini_batch
    cfg.trainer.critic.model.path = None
    cfg.trainer.micro_train_batch_size_per_gpu = case.micro_rows or 1
    cfg.trainer.max_tokens_per_microbatch = -1 if case.micro_rows else case.micro_tokens
    cfg.trainer.remove_microbatch_padding = pack
    cfg.trainer.update_epochs_per_batch = case.epochs
    algorithm = cfg.trainer.algorithm
    algorithm.loss_reduction = loss_reduction
    algorithm.max_seq_len = LONGEST
    algorithm.policy_loss_type = POLICY_LOSSES[case.loss.policy]
    algorithm.eps_clip_low, algorithm.eps_clip_high = case.loss.clip_low, case.loss.clip_high
    algorithm.cispo.cispo_eps_clip_low, algorithm.cispo.cispo_eps_clip_high = (
        case.loss.clip_low,
        case.loss.clip_high,
    )
    algorithm.clip_ratio_c = case.loss.clip_c
    algorithm.temperature = 1.0
    algorithm.use_kl_loss = case.loss.kl is not None
    algorithm.kl_estimator_type = KL[case.loss.kl] if case.loss.kl else "k3"
    algorithm.kl_loss_coef = case.loss.kl_coef
    return cfg


def build_worker(cfg: Any, model: PreTrainedModel, rank: int, ranks: int) -> Any:
    worker = object.__new__(skyrl.worker.PolicyWorkerBase)
    worker.cfg = cfg.trainer
    model.config.use_cache = (
        False  # as SkyRL does with a model that it loads; else packed rows see each other
    )
    worker.model = skyrl.model_wrapper.HFModelWrapper(
        model,
        use_flash_attention_2=cfg.trainer.remove_microbatch_padding,
        remove_microbatch_padding=cfg.trainer.remove_microbatch_padding,
    )
    worker.policy_loss_fn = skyrl.ppo_utils.PolicyLossRegistry.get(cfg.trainer.algorithm.policy_loss_type)
    worker.strategy, worker.optimizer = Strategy(), None
    worker.mesh_rank = types.SimpleNamespace(dp=rank, dp_size=ranks)
    worker.device_mesh = types.SimpleNamespace(get_group=lambda name: None)
    worker.scheduler = types.SimpleNamespace(get_last_lr=lambda: [0.0])
    return worker


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),  # autocast of CUDA is off
        mock.patch.object(torch.cuda, "current_device", return_value=torch.device("cpu")),
        mock.patch.object(skyrl.dispatch.ray, "put", lambda chunk: chunk),
    ):
        yield


def gradients(model: PreTrainedModel, step: Step, mode: str, pack: bool = False) -> list[torch.Tensor]:
    """As `trainer_grid.Driver`; `pack` is SkyRL's `remove_microbatch_padding`."""
    case, rows = step.case, step.rows
    kind = skyrl.trainer.RayPPOTrainer
    if mode not in OWN:
        kind = type("Trainer", (Weighted, kind), {"mode": mode})
    cfg = configure(case, mode if mode in OWN else "token_mean", pack)
    tokenizer = types.SimpleNamespace(pad_token_id=EOS)
    trainer = kind(cfg, None, tokenizer, None, None, None)
    workers = [build_worker(cfg, model, rank, case.ranks) for rank in range(case.ranks)]
    trainer.dispatch = Dispatch(workers, model)
    output = {
        "prompt_token_ids": [row.prompt.tolist() for row in rows],
        "response_ids": [row.response.tolist() for row in rows],
        "rewards": [[0.0] * len(row.response) for row in rows],
        "loss_masks": [row.mask.tolist() for row in rows],
    }
    data = trainer.convert_to_training_input(output, [str(row.group) for row in rows])
    for name in ("advantages", "old_log_probs", "ref_log_probs"):
        column = torch.zeros_like(data["loss_mask"], dtype=next(model.parameters()).dtype)
        for i, row in enumerate(rows):
            column[i, column.shape[1] - len(row.response) :] = getattr(row, name)
        theirs = {"old_log_probs": "action_log_probs", "ref_log_probs": "base_action_log_probs"}
        data[theirs.get(name, name)] = column
    with on_cpu():
        trainer._execute_training_step("policy", data)
    return trainer.dispatch.gradients
