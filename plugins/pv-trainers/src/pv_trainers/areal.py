"""AReaL actor mixin: replaces the mean over the tokens of all ranks by the weights of a pv-rl mode."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, cast

import torch
import torch.distributed as dist

from pv_rl.errors import ConfigError
from pv_rl.losses import resolve_mode, response_weights

__all__ = ["Weighted"]

Base = cast(Any, object)  # the trainer comes after the mixin
TESTED = "1.0.4"
SEAM = ["self", "input_", "loss_fn", "loss_weight_fn"]


class Weighted(Base):
    """Put it before AReaL's actor: `class Actor(Weighted, FSDPPPOActor): mode = "balanced:0.6"`.

    A trajectory of AReaL, the samples of a prompt, is a group. With scope `prompt` the weights are those of the step on
    all ranks, times `ppo_n_minibatches`; with scope `batch` each mini-batch has weights of its own.

    Raises:
        LossModeError: `mode` cannot be read; in a step, an advantage that counts is NaN.
        ConfigError: `m2_threshold` is set, or AReaL's seam has changed.
    """

    mode: ClassVar[str] = "balanced"  # a spec, see pv_rl.losses.resolve_mode

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        resolve_mode(cls.mode)
        seam = getattr(super(), "train_batch", None)
        found = seam and list(inspect.signature(seam).parameters)
        if found != SEAM or not hasattr(super(), "ppo_update"):
            raise ConfigError(
                f"the base class of {cls.__name__} has train_batch({found}); AReaL {TESTED} has train_batch({SEAM}). "
                f"Write class {cls.__name__}(Weighted, FSDPPPOActor), and install areal=={TESTED}."
            )

    def __init__(self, config: Any) -> None:
        if config.m2_threshold is not None:
            raise ConfigError(
                f"actor.m2_threshold={config.m2_threshold} divides each micro-batch by the tokens that M2PO keeps, so "
                f"mode={self.mode} would not be exact. Leave m2_threshold unset."
            )
        super().__init__(config)

    def ppo_update(self, data: list[dict[str, Any]]) -> None:
        if resolve_mode(self.mode).scope == "prompt":
            weights = self._weigh(data)[0].split([len(item["loss_mask"]) for item in data])
            pairs = zip(data, weights, strict=True)
            data = [{**item, "weights": part[:, None].expand_as(item["loss_mask"])} for item, part in pairs]
        return super().ppo_update(data)

    def train_batch(self, input_: dict[str, Any], loss_fn: Any, loss_weight_fn: Any) -> Any:
        weights, tokens = self._weigh([input_])
        batch = {name: value for name, value in input_.items() if name != "weights"}
        scale = input_["weights"] * self.config.ppo_n_minibatches if "weights" in input_ else weights[:, None]
        scaled = torch.where(batch["loss_mask"] != 0, batch["advantages"] * scale * tokens, 0.0)
        return super().train_batch({**batch, "advantages": scaled.float()}, loss_fn, loss_weight_fn)

    def _weigh(self, items: list[dict[str, Any]]) -> tuple[torch.Tensor, int]:
        """(B,) weights of this rank's rows, and the tokens of all ranks; both count the rows of all ranks."""
        rows, group = [], self.data_parallel_group
        for item in items:
            counts = item["loss_mask"] != 0
            totals = torch.where(counts, item["advantages"], 0.0).sum(dim=-1)
            rows.append(list(zip(counts.sum(dim=-1).tolist(), totals.tolist(), strict=True)))
        ranks: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(ranks, rows, group=group)
        groups = [(rank, i) for rank, items in enumerate(ranks) for i, item in enumerate(items) for _ in item]
        lengths, totals = zip(*(row for items in ranks for item in items for row in item), strict=True)
        weights = response_weights(self.mode, lengths, groups, totals)
        first = groups.index((dist.get_rank(group), 0))
        return weights[first : first + sum(map(len, rows))].to(counts.device), sum(lengths)
