"""The trainer's part of a step, by verl's own methods: padding rows, length balancing, advantages, the update.

What is ours here stands in for what a real step has done by then (rollouts, log-probs, rewards), and for
TransferQueue and Ray in between. pv_rl's patch of `_compute_advantage` runs as it does in the trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from omegaconf import DictConfig
from tensordict import NonTensorStack, TensorDict
from verl.trainer.ppo import padding_utils
from verl.trainer.ppo.v1 import trainer_base
from verl.utils import tensordict_utils as tu

from grid.model import EOS
from grid.oracle import Row
from grid.store import Store

PARTITION = "train"


class Tokenizer:
    eos_token_id = EOS


class Driver(trainer_base.PPOTrainer):
    """A PPOTrainer whose worker group is one rank: it runs in each of them, and all come to the same batch."""

    def __init__(
        self, config: DictConfig, rank: int, ranks: int, update: Callable[[TensorDict], TensorDict]
    ) -> None:
        self.config = config
        self.tokenizer = Tokenizer()
        self.use_critic = False
        self.global_steps = 1
        self.actor_rollout_wg = OneRank(rank, ranks, update)
        self.store = self.actor_rollout_wg.store
        trainer_base.tq = padding_utils.tq = self.store

    def on_sample_end(self): ...

    def on_step_end(self): ...

    def step(self, rows: Sequence[Row], scores: Sequence[float], *, balance: bool, is_weights: bool) -> Any:  # type: ignore[override]
        """One update on these rows, cut as the config says; what the workers were given, by row index."""
        keys, fields = _rollouts(rows, scores)
        tags = [{"seq_len": len(row["input_ids"]), "is_padding": False} for row in fields]
        batch = self.store.kv_batch_put(keys, PARTITION, _stack(fields), tags)
        if balance:
            batch = self._balance_batch(batch, metrics={})
        else:
            multiple = self._get_required_batch_multiple(self.actor_rollout_wg.ranks)
            batch = padding_utils.upsample_batch_to_divisible_size(batch, multiple, EOS)
        index = {key: i for i, key in enumerate(keys)}
        log_probs = [_log_probs(rows, index.get(key), is_weights) for key in batch.keys]
        batch = self.store.kv_batch_put(batch.keys, PARTITION, _stack(log_probs))
        batch = self._compute_advantage(batch, metrics={})
        self._update_actor(batch, metrics={})
        return {i: self.store.rows[key]["advantages"] for key, i in index.items()}


class OneRank:
    """Stands for the worker group: gives this rank its share, as verl's dispatch does."""

    def __init__(self, rank: int, ranks: int, update: Callable[[TensorDict], TensorDict]) -> None:
        self.rank, self.ranks, self.update = rank, ranks, update
        self.store = Store()
        self._dispatch_info = {"actor": list(range(ranks))}

    def update_actor(self, batch: Any) -> TensorDict:
        share = len(batch) // self.ranks
        keys = batch.keys[self.rank * share : (self.rank + 1) * share]
        data = self.store.kv_batch_get(keys, batch.partition_id, batch.fields)
        for name, value in batch.extra_info.items():
            tu.assign_non_tensor_data(data, name, value)
        return self.update(data)


def _rollouts(rows: Sequence[Row], scores: Sequence[float]) -> tuple[list[str], list[dict[str, Any]]]:
    """Keys and fields as an agent loop puts them (verl/trainer/ppo/v1/agent_loop_tq.py)."""
    keys, fields = [], []
    seen: dict[Any, int] = {}
    for row, score in zip(rows, scores, strict=True):
        session = seen[row.group] = seen.get(row.group, -1) + 1
        input_ids = torch.cat([row.prompt, row.response])
        rewards = torch.zeros(len(row.response))
        rewards[-1] = score
        # An abstained row keeps the loss_mask it came with; a tool's tokens are outside both masks.
        abstained = not row.mask.any()
        keys.append(f"{row.group}_{session}_0")
        fields.append(
            {
                "uid": row.group,
                "prompts": row.prompt,
                "responses": row.response,
                "input_ids": input_ids,
                "attention_mask": torch.ones_like(input_ids),
                "position_ids": torch.arange(len(input_ids)),
                "response_mask": row.mask,
                "loss_mask": torch.ones_like(row.mask) if abstained else row.mask,
                "rm_scores": rewards,
                "rollout_log_probs": row.old_log_probs,
                "num_turns": 2,
                "extra_fields": {
                    "reward_extra_info": {"verdict_true": float(score > 0), "verdict_missing": 0.0}
                },
            }
        )
    return keys, fields


def _log_probs(rows: Sequence[Row], index: int | None, is_weights: bool) -> dict[str, Any]:
    """What the trainer computes after it has padded and balanced; a padding row has one token."""
    row = None if index is None else rows[index]
    one = torch.ones(1)
    fields = {
        "row_id": torch.tensor([-1 if index is None else index]),
        "old_log_probs": row.old_log_probs if row else -one,
        "ref_log_prob": row.ref_log_probs if row else -one,
    }
    return fields | ({"rollout_is_weights": row.is_weights if row else one} if is_weights else {})


def _stack(rows: list[dict[str, Any]]) -> TensorDict:
    def column(values: list[Any]) -> Any:
        if isinstance(values[0], torch.Tensor):
            return torch.nested.as_nested_tensor(values, layout=torch.jagged)
        return NonTensorStack(*values)

    return TensorDict({name: column([row[name] for row in rows]) for name in rows[0]}, batch_size=len(rows))
