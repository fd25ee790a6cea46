"""Weighted GRPO trainer for TRL: `loss_agg_mode` as a keyword of `trl.GRPOTrainer`; see docs/trainers/trl.md.

TRL scores a generation batch with its groups whole, then shuffles and cuts it. Advantages are scaled in between, by the
number that TRL's loss divides by, so accumulation, several updates a generation batch and ranks change nothing.
"""

from __future__ import annotations

from typing import Any

import torch
import trl
from torch import Tensor

from pv_rl.errors import ConfigError
from pv_rl.losses import resolve_mode, response_weights, scale_advantages
from pv_rl.metric_names import TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN, UPDATE_MASS

__all__ = ["WeightedAdvantages", "WeightedGRPOTrainer"]

DENOMINATORS = {
    **dict.fromkeys(("dapo", "cispo", "vespo"), lambda lengths, longest: lengths.sum().clamp(min=1)),
    **dict.fromkeys(("grpo", "sapo"), lambda lengths, longest: len(lengths) * lengths.clamp(min=1)),
    "dr_grpo": lambda lengths, longest: len(lengths) * longest,
    "luspo": lambda lengths, longest: len(lengths),
}
"""What a `loss_type` of TRL 1.16 divides a row's sum over tokens by: one number, or one for each row."""


class WeightedAdvantages:
    """Mixin for a subclass of `trl.GRPOTrainer`, Unsloth's too; with `loss_agg_mode`, for example `balanced:0.6`.

    Raises:
        LossModeError: the spec cannot be read.
        ConfigError: the `loss_type` divides by a number that depends on how TRL cuts the batch, or that is unknown.
    """

    def __init__(self, *args: Any, loss_agg_mode: str, **kwargs: Any) -> None:
        self.loss_agg_mode = resolve_mode(loss_agg_mode)
        super().__init__(*args, **kwargs)
        if self.loss_type not in DENOMINATORS:
            raise ConfigError(
                f"loss_type={self.loss_type} of trl {trl.__version__} divides by a number that loss_agg_mode cannot "
                f"replace. Set loss_type to one of {', '.join(DENOMINATORS)} in GRPOConfig."
            )

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        rewards = super()._calculate_rewards(*args, **kwargs)  # (rows of all ranks, functions), NaN for None
        flags = [each.dropped for each in self.reward_funcs if hasattr(each, "dropped")]
        if flags and self.model.training:  # a reward that takes whole groups out, see trl_rewards
            dropped = self.accelerator.gather(torch.tensor(flags, device=rewards.device).any(dim=0))
            rewards.view(-1, self.num_generations, rewards.shape[1])[
                dropped.view(-1, self.num_generations).any(1)
            ] = torch.nan
        self._scored = ~rewards.isnan().all(dim=1)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return batch
        accelerator, rows = self.accelerator, len(batch["advantages"])
        here = slice(accelerator.process_index * rows, (accelerator.process_index + 1) * rows)
        batch["completion_mask"] = batch["completion_mask"] * self._scored[here, None]
        local = (batch["completion_mask"] * batch.get("tool_mask", 1)).to(torch.uint8)  # padding makes bool long
        mask, advantages = (
            accelerator.gather(accelerator.pad_across_processes(each, dim=1))
            for each in (local, batch["advantages"])
        )
        lengths, groups = mask.sum(dim=1), [row // self.num_generations for row in range(len(mask))]
        denominator = DENOMINATORS[self.loss_type](lengths, self.max_completion_length)
        scaled = scale_advantages(self.loss_agg_mode, advantages, mask, groups, denominator)[here]
        batch["advantages"] = scaled if scaled.dim() == 1 else scaled[:, : local.shape[1]]
        batch["num_items_in_batch"] = lengths.sum()
        self._log_weights(
            lengths, groups, advantages if scaled.dim() == 1 else (advantages * mask).sum(dim=1)
        )
        return batch

    def _log_weights(self, lengths: Tensor, groups: list[int], advantages: Tensor) -> None:
        weights = response_weights(self.loss_agg_mode, lengths, groups, advantages).cpu()
        updates = self.args.steps_per_generation / self.args.gradient_accumulation_steps
        counted = weights[weights > 0] * updates if weights.any() else weights[:1]
        log = self._metrics["train"]
        log[UPDATE_MASS].append(float(weights @ lengths.cpu().to(weights.dtype)))
        log[TOKEN_WEIGHT_MAX].append(float(counted.max()))
        log[TOKEN_WEIGHT_MIN].append(float(counted.min()))


class WeightedGRPOTrainer(WeightedAdvantages, trl.GRPOTrainer):
    """`trl.GRPOTrainer` with a `loss_agg_mode`; everything else as in TRL."""
