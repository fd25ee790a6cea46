"""Patches of verl's loss functions: provide the row weights of a micro-batch and log their use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pv_rl import metric_names
from pv_rl.errors import VerlError
from pv_rl.losses import LossMode
from pv_rl.losses.mode import find_mode
from pv_rl.verl_adapter.aggregation import MicroBatch, in_use
from pv_rl.verl_adapter.batch_weights import batch_totals
from pv_rl.verl_adapter.install import replace_everywhere
from pv_rl.verl_adapter.row_weights import field_name, mini_batch_rows

__all__ = ["patch_distillation_loss", "patch_loss_functions"]


def patch_loss_functions(module: Any) -> None:
    """Wrap `ppo_loss` and `value_loss` (verl/workers/utils/losses.py:57, :147).

    They see the micro-batch before fields are selected, so they can hand the row weights to every `agg_loss`
    beneath: policy, KL, entropy and value terms, whatever the policy loss mode. Symptom without it:
    `agg_loss` sees neither `uid` nor fields. Can go when verl passes its data to `agg_loss`.
    """
    replace_everywhere(module, "ppo_loss", _aggregated(module, module.ppo_loss, _ppo_terms))
    replace_everywhere(module, "value_loss", _aggregated(module, module.value_loss, lambda *_: 1))


def patch_distillation_loss(module: Any) -> None:
    """Wrap `distillation_loss` (verl/trainer/distillation/losses.py:230), which aggregates before `ppo_loss` does.

    Symptom without it: "a loss is being aggregated for which no weights were computed" at the first update. Can go
    when verl passes its data to `agg_loss`.
    """
    from verl.workers.utils import losses  # loaded: `module` has imported from it

    original = module.distillation_loss

    @functools.wraps(original)
    def distillation_loss(config, distillation_config, model_output, data, *arguments, **options):
        def of_micro_batch(config, model_output, data, dp_group):
            return original(config, distillation_config, model_output, data, *arguments, **options)

        return _aggregated(losses, of_micro_batch, lambda *_: 1)(config, model_output, data)

    replace_everywhere(module, "distillation_loss", distillation_loss)


def _ppo_terms(config: Any, model_output: Any) -> int:
    return 1 + (model_output.get("entropy") is not None) + bool(config.use_kl_loss)


def _alias(config: Any) -> str | None:
    """What verl 0.9.0's gspo names in the place of the config's mode (core_algos.py:1605); 0.9.1's takes that."""
    policy_loss = getattr(config, "policy_loss", None)
    return "seq-mean-token-mean" if policy_loss and policy_loss.get("loss_mode") == "gspo" else None


def _aggregated(
    module: Any, original: Callable[..., Any], terms: Callable[[Any, Any], int]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(config, model_output, data, dp_group=None, *more, **options):
        mode = find_mode(config.loss_agg_mode)
        if mode is None:
            return original(config, model_output, data, dp_group, *more, **options)
        weights = _fetch(data, mode)
        totals = batch_totals(data) if mode.scope == "batch" else None
        lengths = torch.stack([mask.sum() for mask in data["response_mask"].unbind()]).to(weights.device)
        micro_batch = MicroBatch(mode, weights, lengths, data["dp_size"], totals, _alias(config))
        with in_use(micro_batch):
            value, metrics = original(config, model_output, data, dp_group, *more, **options)
        micro_batch.check_order()
        expected = terms(config, model_output)
        if micro_batch.uses < expected:
            raise VerlError(
                f"loss_agg_mode={mode.spec}: {expected} loss terms were computed and {micro_batch.uses} of them "
                "were aggregated by it. This policy loss aggregates in a way of its own, so that loss_agg_mode has no "
                "effect on it; use another actor.policy_loss.loss_mode, for example gspo or vanilla."
            )
        return value, metrics | _metrics(module, micro_batch)

    return loss


def _fetch(data: Any, mode: LossMode) -> Tensor:
    """(B,) the weights of the micro-batch's rows, scaled to its mini-batch."""
    name = field_name(mode)
    if name not in data.keys():  # noqa: SIM118 - `in` on a TensorDict is not a look-up
        remedy = (
            f"Use verl's V1 trainer, or {mode.name}@batch, which needs no groups."
            if mode.scope == "prompt"
            else "Its mini-batches have to pass TrainingWorker.train_batch, and its loss function to have `config` as "
            "a keyword, as in verl's own workers."
        )
        raise VerlError(
            f"loss_agg_mode={mode.spec}: the rows came to the loss without the field {name!r}, so this "
            f"{'trainer' if mode.scope == 'prompt' else 'worker'} is not one that pv-rl serves. {remedy}"
        )
    field = data[name]
    field = field.values() if field.is_nested else field
    return field.reshape(-1) / mini_batch_rows(data, mode)


def _metrics(module: Any, micro_batch: MicroBatch) -> dict[str, Any]:
    """The weights at hand, in verl's metric stream: the mass of a mini-batch is 1 on average over a step."""
    weights = micro_batch.weights
    mass = (weights * micro_batch.lengths).sum() * micro_batch.dp_size
    counted = weights[weights > 0]
    kinds = module.AggregationType
    return {
        metric_names.UPDATE_MASS: module.Metric(value=mass, aggregation=kinds.SUM),
        metric_names.TOKEN_WEIGHT_MAX: module.Metric(value=weights.max(), aggregation=kinds.MAX),
        metric_names.TOKEN_WEIGHT_MIN: module.Metric(
            value=counted.min() if len(counted) else float("inf"), aggregation=kinds.MIN
        ),
    }
