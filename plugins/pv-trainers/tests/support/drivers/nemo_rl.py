"""Driver of NeMo-RL: its estimator, sharding, denominators, micro-batches and loss, on the CPU.

Of a clone at the commit of `VERSION`, named by PV_TRAINERS_NEMO_RL. What is not NeMo-RL's own:

- stubs of the packages in STUBS, which the called functions do not use;
- `.cuda()` returns the tensor; ranks are called one after the other, with an all-reduce that adds what each rank's own
  call counts, or (`gloo=True`) are processes with gloo; their gradients are averaged, as FSDP does;
- the rewards are the step's advantages, and the estimator's baseline is the plain mean;
- packed sequences go through the model one at a time in the place of flash attention.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import typing
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import typing_extensions
from clones import clone
from torch.nn.utils.rnn import pad_sequence
from trainer_grid import Step
from transformers import PreTrainedModel

NAME = "NeMo-RL"
VERSION = "7ea279abfbeb698b092856d0dab61e7cf39bc909"
OWN = {"token_level_loss=true": "dapo@batch", "token_level_loss=false": "grpo@batch"}
"""By the setting of `loss_fn`. Both count over the rows of an update."""
DEFAULT = "token_level_loss=true"

STUBS = ("mlflow", "nemo_automodel", "pynvml", "soundfile", "swanlab")
with (
    clone("PV_TRAINERS_NEMO_RL", ".", stubs=STUBS) as ROOT,
    patch.object(typing, "TypedDict", typing_extensions.TypedDict),  # pydantic asks for it below Python 3.12
):
    from nemo_rl.algorithms import grpo
    from nemo_rl.algorithms.loss import ClippedPGLossConfig, ClippedPGLossFn
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict
    from nemo_rl.models.automodel import data as automodel_data
    from nemo_rl.models.automodel.train import LossPostProcessor, automodel_forward_backward


def make_config(
    loss: ClippedPGLossConfig, rows: int, *, weighting: str | None = None, **settings: Any
) -> SimpleNamespace:
    """What `_create_advantage_estimator` and the module of pv-trainers read of a MasterConfig."""
    extra = {} if weighting is None else {"weighting": weighting}
    estimator = grpo.AdvEstimatorConfig(normalize_rewards=False, use_leave_one_out_baseline=False, **extra)
    return SimpleNamespace(
        grpo=grpo.GRPOConfig(adv_estimator=estimator, **settings),
        loss_fn=loss,
        policy={"train_global_batch_size": rows},
    )


def make_loss_config(step: Step, *, by_token: bool) -> ClippedPGLossConfig:
    loss = step.case.loss
    return ClippedPGLossConfig(
        token_level_loss=by_token,
        sequence_level_importance_ratios=loss.policy == "gspo",
        use_cispo=loss.policy == "cispo",
        ratio_clip_min=loss.clip_low,
        ratio_clip_max=loss.clip_high,
        ratio_clip_c=loss.clip_c if loss.policy == "vanilla" else None,
        reference_policy_kl_penalty=loss.kl_coef if loss.kl else 0.0,
        reference_policy_kl_type="k3",
    )


def make_batch(step: Step) -> BatchedDataDict:
    """The rows of a step as `grpo_train` hands them to its policy; a row that does not count has sample_mask 0."""

    def padded(name: str) -> torch.Tensor:
        rows = [torch.cat([torch.zeros(len(row.prompt)), getattr(row, name).float()]) for row in step.rows]
        return pad_sequence(rows, batch_first=True)

    tokens = [torch.cat([row.prompt, row.response]) for row in step.rows]
    counts = torch.tensor([float(row.mask.any()) for row in step.rows])
    return BatchedDataDict(
        {
            "input_ids": pad_sequence(tokens, batch_first=True),
            "input_lengths": torch.tensor([len(row) for row in tokens]),
            "generation_logprobs": padded("old_log_probs"),
            "prev_logprobs": padded("old_log_probs"),
            "reference_policy_logprobs": padded("ref_log_probs"),
            "token_mask": torch.where(
                counts[:, None] == 1, padded("mask"), (padded("old_log_probs") != 0).float()
            ),
            "sample_mask": counts,
        }
    )


def gradients(
    model: PreTrainedModel,
    step: Step,
    mode: str,
    *,
    by_token: bool | None = None,
    packed: bool = False,
    gloo: bool = False,
) -> list[torch.Tensor]:
    """See `trainer_grid.Driver`. Ours go through either level of the loss, gspo through the sequence level."""
    own = mode in OWN
    if by_token is None:
        by_token = mode == "token_level_loss=true" if own else step.case.loss.policy != "gspo"
    loss = make_loss_config(step, by_token=by_token)
    rows, ranks = step.case.mini_rows or len(step.rows), step.case.ranks
    config = make_config(loss, rows, weighting=None if own else mode)
    batch = make_batch(step)
    groups = {row.group: number for number, row in enumerate(step.rows)}
    prompts = pad_sequence(
        [torch.cat([torch.tensor([groups[row.group]]), row.prompt]) for row in step.rows], True
    )
    estimator = grpo._create_advantage_estimator(config)
    if not own:
        from pv_trainers.nemo_rl import weigh

        estimator = weigh(estimator, config)
    batch["advantages"] = estimator.compute_advantage(
        prompt_ids=prompts,
        rewards=torch.tensor([float(row.advantages[0]) for row in step.rows]),
        mask=batch["token_mask"] * batch["sample_mask"][:, None],
        repeated_batch={},
        logprobs_policy=batch["prev_logprobs"],
        logprobs_reference=batch["reference_policy_logprobs"],
    )
    tokens = 2 * int(batch["input_lengths"].max())
    packing = {
        "max_tokens_per_microbatch": tokens,
        "input_key": "input_ids",
        "input_lengths_key": "input_lengths",
        "algorithm": "modified_first_fit_decreasing",
        "sequence_length_pad_multiple": 1,
    }
    shards: Any = batch.shard_by_batch_size(
        ranks, batch_size=rows, sequence_packing_args=packing if packed else None
    )
    shards = shards[0] if packed else shards
    worker = Worker(
        model, ClippedPGLossFn(loss), rows // ranks, ranks, step.case.micro_rows, tokens if packed else 0
    )
    updates = len(step.rows) // rows
    with patch.object(torch.Tensor, "cuda", lambda tensor: tensor):
        return worker.in_processes(shards, updates) if gloo else worker.one_after_the_other(shards, updates)


@dataclass
class Worker:
    """The loop of the DTensor worker over updates and micro-batches."""

    model: PreTrainedModel
    loss_fn: ClippedPGLossFn
    rows: int
    """Rows of an update on a rank."""
    ranks: int
    micro_rows: int | None
    packed_tokens: int
    """Of a packed micro-batch; 0: sequences are padded."""

    def one_after_the_other(self, shards: Any, updates: int) -> list[torch.Tensor]:
        found = []
        for update in range(updates):
            counted: list[torch.Tensor] = []
            with patch("torch.distributed.all_reduce", lambda counts, group: counted.append(counts.clone())):  # noqa: B023
                for shard in shards:
                    self.process(shard, update)
            self.model.zero_grad()
            with patch("torch.distributed.all_reduce", lambda counts, group: counts.copy_(sum(counted))):  # noqa: B023
                for shard in shards:
                    self.backward(self.process(shard, update))
            found.append(self.gradient() / self.ranks)
        return found

    def in_processes(self, shards: Any, updates: int) -> list[torch.Tensor]:
        with tempfile.TemporaryDirectory() as folder:
            fork = multiprocessing.get_context("fork")  # the import of NeMo-RL takes longer than the test
            processes = [
                fork.Process(target=self.rank, args=(rank, shards[rank], updates, folder))
                for rank in range(self.ranks)
            ]
            for process in processes:
                process.start()
            for process in processes:
                process.join(60)
                assert process.exitcode == 0, f"a rank ended with {process.exitcode}"
            return torch.load(f"{folder}/gradients.pt")

    def rank(self, rank: int, shard: Any, updates: int, folder: str) -> None:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=self.ranks
        )
        found = []
        for update in range(updates):
            self.model.zero_grad()
            self.backward(self.process(shard, update))
            found.append(self.gradient())
            torch.distributed.all_reduce(found[-1])
            found[-1] /= self.ranks
        if rank == 0:
            torch.save(found, f"{folder}/gradients.pt")
        torch.distributed.destroy_process_group()

    def process(self, shard: Any, update: int) -> dict[str, Any]:
        return automodel_data.process_global_batch(
            shard, self.loss_fn, None, batch_idx=update, batch_size=self.rows
        )

    def backward(self, part: dict[str, Any]) -> None:
        packed = bool(self.packed_tokens)
        settings = {"sequence_packing": {"enabled": packed, "train_mb_tokens": self.packed_tokens}}
        if packed:
            cut = part["batch"].make_microbatch_iterator_for_packable_sequences()
        else:
            cut = part["batch"].make_microbatch_iterator(self.micro_rows or self.rows)
        tokenizer = SimpleNamespace(eos_token_id=1)
        automodel_forward_backward(
            model=_OneByOne(self.model) if packed else self.model,
            data_iterator=automodel_data.make_processed_microbatch_iterator(cut, tokenizer, settings, 1),
            post_processing_fn=LossPostProcessor(
                self.loss_fn, settings, None, None, None, 1, self.ranks, packed
            ),
            global_valid_seqs=part["global_valid_seqs"],
            global_valid_toks=part["global_valid_toks"],
            dp_size=self.ranks,
        )

    def gradient(self) -> torch.Tensor:
        return torch.cat([parameter.grad.reshape(-1) for parameter in self.model.parameters()])


class _OneByOne(torch.nn.Module):
    """A model that takes packed sequences, (1, tokens), and computes each by itself."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, flash_attn_kwargs: Any, **others: Any) -> torch.Tensor:
        ends = flash_attn_kwargs.cu_seqlens_q.tolist()
        parts = zip(ends, [*ends[1:], input_ids.shape[1]], strict=True)
        return torch.cat([self.model(input_ids=input_ids[:, a:b]).logits for a, b in parts if b > a], dim=1)
