"""TRL: its GRPO trainer, unchanged, on given rows.

`rollout_func`, TRL's own door, returns the rows of the step; TRL pads, masks, scores, shuffles and cuts them, computes
the loss and accumulates. Given in place of TRL's are the log-probabilities of the old and the reference policy, and the
factors that correct vLLM's probabilities.
"""

from __future__ import annotations

import atexit
import copy
import gc
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from datasets import Dataset
from grid.oracle import Loss
from torch.nn.utils.rnn import pad_sequence
from trainer_grid import Step, beside
from transformers import AutoTokenizer, PreTrainedModel, TrainerCallback

NAME, VERSION = "TRL", "1.16.0"
beside(f"trl-{VERSION}", "trl")

import trl  # noqa: E402
from accelerate.state import AcceleratorState, GradientState, PartialState  # noqa: E402

from pv_trainers.trl import WeightedAdvantages  # noqa: E402

gc.freeze()  # accelerate collects garbage after each training: a second of looking through what was imported

LONGEST = 64
"""max_completion_length."""

OWN = {
    "loss_type=dapo": "dapo@batch",
    "loss_type=cispo": "dapo@batch",
    "loss_type=grpo": "grpo",
    "loss_type=dr_grpo": f"dr_grpo:{LONGEST}",
    "loss_type=luspo": "dr_grpo:1",
    "loss_type=bnpo": "",
}
DEFAULT = "loss_type=dapo"
LOSSES = {"loss_type=cispo": Loss(policy="cispo", clip_low=1.0)}
CANNOT = {
    "uneven groups": "every prompt has num_generations responses",
    "packed by tokens": "per_device_train_batch_size counts rows",
}

Update = tuple[torch.Tensor, list[int]]


class GivenRows(trl.GRPOTrainer):
    """A GRPO trainer of a step's rows. It notes which rows each update was made of, and its gradient."""

    def __init__(self, step: Step, *args: Any, **kwargs: Any) -> None:
        self.step, self.updates, self._seen, self._generations = step, [], [], 0
        super().__init__(*args, rollout_func=self._rows_here, reward_funcs=self.reward, **kwargs)
        self.add_callback(Notes(self))

    def _rows_here(self, prompts: list[str], _: Any) -> dict[str, Any]:
        place = self._generations * self.accelerator.num_processes + self.accelerator.process_index
        start = place * len(prompts) % len(self.step.rows)
        self._here, self._generations = range(start, start + len(prompts)), self._generations + 1
        rows = [self.step.rows[i] for i in self._here]
        given = {
            "prompt_ids": [row.prompt.tolist() for row in rows],
            "completion_ids": [row.response.tolist() for row in rows],
            "logprobs": None,
        }
        if self.step.case.holes:
            ones = [row.mask if row.mask.any() else torch.ones_like(row.mask) for row in rows]
            given["env_mask"] = [mask.tolist() for mask in ones]
        return given

    def reward(self, completions: Sequence[str], **_: Any) -> list[float | None]:
        """The row's advantage, whose mean over the group is 0; None where the row does not count."""
        rows = [self.step.rows[i] for i in self._here]
        return [float(row.advantages[0]) if row.mask.any() else None for row in rows]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        rows = [self.step.rows[i] for i in self._here]

        def padded(name: str, value: float = 0.0) -> torch.Tensor:
            return pad_sequence([getattr(row, name) for row in rows], batch_first=True, padding_value=value)

        batch["old_per_token_logps"] = padded("old_log_probs")
        if self.step.case.is_weights:
            batch["importance_sampling_ratio"] = padded("is_weights", 1.0)
        if "ref_per_token_logps" in batch:
            batch["ref_per_token_logps"] = padded("ref_log_probs")
        batch["row"] = torch.tensor(list(self._here))
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._seen.append(inputs["row"])
        self.use_vllm = self.step.case.is_weights  # multiplies each token by `importance_sampling_ratio`
        loss = super()._compute_loss(model, inputs)
        self.use_vllm = False
        return loss


class Weighted(WeightedAdvantages, GivenRows):
    """The same with a mode of ours."""


class Notes(TrainerCallback):
    """Before each optimizer step: the gradient, all ranks together, and the rows it is of."""

    def __init__(self, trainer: GivenRows) -> None:
        self.trainer = trainer

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        rows = self.trainer.accelerator.gather(torch.cat(self.trainer._seen)).tolist()
        self.trainer._seen.clear()
        parameters = (p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters())
        self.trainer.updates.append((torch.cat([p.flatten().clone() for p in parameters]), sorted(rows)))


def gradients(model: PreTrainedModel, step: Step, mode: str, **settings: Any) -> list[torch.Tensor]:
    """See `trainer_grid.Driver`; `settings` are of GRPOConfig."""
    return [gradient for gradient, _ in updates(model, step, mode, **settings)]


def updates(model: PreTrainedModel, step: Step, mode: str, **settings: Any) -> list[Update]:
    """The gradient of each update, and the rows that TRL's shuffling put into it."""
    _reference(model)  # saved before there are ranks, of which one alone would save it
    if step.case.ranks == 1:
        return train(model, step, mode, **settings).updates
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    folder = tempfile.TemporaryDirectory()
    ranks = [
        context.Process(target=_rank, args=(rank, folder.name, answers, model, step, mode, settings))
        for rank in range(step.case.ranks)
    ]
    for process in ranks:
        process.start()
    try:
        found = answers.get(timeout=120)
    finally:
        for process in ranks:
            process.join(10)
            process.kill()
    if isinstance(found, str):
        raise RuntimeError(found)
    return [(torch.from_numpy(gradient), rows) for gradient, rows in found]


def _rank(rank: int, folder: str, answers: Any, model: Any, step: Step, mode: str, settings: Any) -> None:
    for state in (AcceleratorState, GradientState, PartialState):
        state._shared_state.clear()
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(step.case.ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "GLOO_SOCKET_IFNAME": "lo"}
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=step.case.ranks
    )
    try:
        found = train(model, step, mode, **settings).updates
        if rank == 0:
            answers.put([(gradient.numpy(), rows) for gradient, rows in found])
    except Exception as error:
        answers.put(f"rank {rank}: {error!r}")
        raise


def train(model: PreTrainedModel, step: Step, mode: str, **settings: Any) -> GivenRows:
    """One step by TRL's trainer in this process, which is one of the case's ranks."""
    case, policy = step.case, step.case.loss
    sizes = {len(group) for group in case.groups}
    if len(sizes) > 1:
        raise ValueError("TRL has groups of one size")
    rows = len(case.lengths)
    per_update = case.mini_rows or rows
    micro_rows = case.micro_rows or per_update // case.ranks
    one_pass = case.ranks * micro_rows
    given: dict[str, Any] = {
        "loss_type": mode.partition("=")[2] if mode in OWN else "dapo",
        "importance_sampling_level": "sequence" if policy.policy == "gspo" else "token",
        "epsilon": policy.clip_low,
        "epsilon_high": policy.clip_high,
        "delta": policy.clip_c if policy.policy == "vanilla" else None,
        "beta": policy.kl_coef,
        "use_bias_correction_kl": False,
        "scale_rewards": "none",
        "steps_per_generation": rows // one_pass,
    }
    if policy.policy == "cispo":
        given |= {"loss_type": "cispo", "epsilon_high": 1 + policy.clip_high}
    given |= settings
    tokenizer = AutoTokenizer.from_pretrained(model.config.name_or_path)
    reference = _reference(model)
    model = copy.deepcopy(model)
    model.register_forward_pre_hook(_count_positions, with_kwargs=True)
    with tempfile.TemporaryDirectory() as folder:
        if policy.kl:
            model.config.name_or_path = reference
        config = trl.GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=micro_rows,
            num_generations=sizes.pop(),
            gradient_accumulation_steps=per_update // one_pass,
            num_iterations=case.epochs,
            max_steps=rows // per_update * case.epochs,
            max_completion_length=LONGEST,
            shuffle_dataset=False,
            learning_rate=0.0,
            optim="sgd",
            max_grad_norm=0.0,
            use_cpu=True,
            bf16=False,
            ddp_backend="gloo" if case.ranks > 1 else None,
            gradient_checkpointing=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            seed=case.seed,
            **given,
        )
        kind, chosen = (GivenRows, {}) if mode in OWN else (Weighted, {"loss_agg_mode": mode})
        trainer = kind(
            step=step,
            model=model,
            args=config,
            train_dataset=Dataset.from_dict({"prompt": [str(i) for i in range(len(case.groups))]}),
            processing_class=tokenizer,
            **chosen,
        )
        trainer.train()
    return trainer


@cache
def _reference(model: PreTrainedModel) -> str:
    """A folder from which TRL can load its reference model, whose log-probabilities are replaced."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    model.save_pretrained(folder)
    return folder


def _count_positions(model: PreTrainedModel, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """GPT-2 counts padding on the left as positions, unlike models with rotary embeddings; TRL passes none."""
    if "position_ids" not in kwargs:
        kwargs["position_ids"] = (kwargs["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
    return args, kwargs
