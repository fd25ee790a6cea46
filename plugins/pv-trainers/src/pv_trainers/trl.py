"""Weighted GRPO trainer for TRL: `loss_agg_mode` as a keyword of `trl.GRPOTrainer`; see docs/guides/trainers/trl.md.

TRL scores a generation batch of whole groups, then shuffles and cuts it. The mixin scales the advantages in between.
"""

from typing import Any, cast

import trl
from packaging.version import Version
from torch import Tensor

from pv_rl.errors import ConfigError
from pv_rl.losses import resolve_mode, response_weights, scale_advantages
from pv_rl.metric_names import TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN, UPDATE_MASS
from pv_trainers import trl_labels, trl_rewards

__all__ = ["WeightedAdvantages", "WeightedGRPOTrainer"]

DENOMINATORS = {
    **dict.fromkeys(("dapo", "cispo", "vespo"), lambda lengths, longest: lengths.sum().clamp(min=1)),
    **dict.fromkeys(("grpo", "sapo"), lambda lengths, longest: len(lengths) * lengths.clamp(min=1)),
    "dr_grpo": lambda lengths, longest: len(lengths) * longest,
    "luspo": lambda lengths, longest: len(lengths),
}
"""What a `loss_type` of TRL 1.15 and 1.16 divides a row's sum over tokens by: one number, or one for each row."""


class WeightedAdvantages(cast(Any, object)):  # for type checkers: it has every attribute
    """Mixin before a subclass of `trl.GRPOTrainer`, Unsloth's too; `loss_agg_mode` is a spec, see `resolve_mode`.

    Raises `ConfigError` if the loss divides by a number that is unknown, or that depends on how TRL cuts the batch."""

    def __init__(self, *args: Any, loss_agg_mode: str, **kwargs: Any) -> None:
        self.loss_agg_mode = resolve_mode(loss_agg_mode)
        super().__init__(*args, **kwargs)
        loss_type, known = getattr(self, "loss_type", None), Version(trl.__version__) >= Version("1.15")
        known &= not any(each.__module__.startswith("trl.experimental") for each in type(self).__mro__)
        if not known or loss_type not in DENOMINATORS:
            raise ConfigError(
                f"loss_type={loss_type} of {type(self).__name__} in trl {trl.__version__} divides by an unknown count, "
                f"or a micro-batch's. With GRPOTrainer of trl 1.15 or 1.16, set loss_type to {', '.join(DENOMINATORS)}."
            )
        trl_labels.check_labels(self)

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        rewards = super()._calculate_rewards(*args, **kwargs)  # (rows of all ranks, functions), NaN for None
        if self.model.training:
            trl_rewards.drop_groups(rewards, self.reward_funcs, self.num_generations, self.accelerator.gather)
        self._scored = ~rewards.isnan().all(dim=1)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        training = self.model.training  # read it first: Unsloth changes it to generate
        batch = super()._generate_and_score_completions(inputs)
        if not training:
            return batch
        if "unsloth_sample_weight" in batch:
            raise ConfigError("UNSLOTH_GRPO_* makes Unsloth weigh rows. Unset it, or leave out the mixin.")
        rank, rows = self.accelerator.process_index, len(batch["advantages"])
        batch["completion_mask"] = batch["completion_mask"] * self._scored.split(rows)[rank][:, None]
        local = (batch["completion_mask"] * batch.get("tool_mask", 1)).byte()  # accelerate pads bool as int64
        padded = [self.accelerator.pad_across_processes(each, dim=1) for each in (local, batch["advantages"])]
        mask, advantages = map(self.accelerator.gather, padded)
        lengths, groups = mask.sum(dim=1), [row // self.num_generations for row in range(len(mask))]
        denominator = DENOMINATORS[self.loss_type](lengths, self.max_completion_length)
        scaled = scale_advantages(self.loss_agg_mode, advantages, mask, groups, denominator).split(rows)[rank]
        batch["advantages"] = scaled if scaled.dim() == 1 else scaled[:, : local.shape[1]]
        batch["num_items_in_batch"] = lengths.sum()
        totals = advantages if advantages.dim() == 1 else (advantages * mask).sum(dim=1)
        weights = response_weights(self.loss_agg_mode, lengths, groups, totals).cpu()
        updates = self.args.steps_per_generation / self.args.gradient_accumulation_steps
        log = self._metrics["train"]
        log[UPDATE_MASS].append(float(weights @ lengths.cpu().double()))
        log[TOKEN_WEIGHT_MAX].append(float(weights.max()) * updates)
        log[TOKEN_WEIGHT_MIN].append(float(weights.where(weights > 0, weights.max()).min()) * updates)
        return batch


class WeightedGRPOTrainer(WeightedAdvantages, trl.GRPOTrainer):
    """`trl.GRPOTrainer` with a `loss_agg_mode`; everything else is as in TRL."""
