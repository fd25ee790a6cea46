"""SkyRL trainer mixin: replaces `trainer.algorithm.loss_reduction` by the weights of a pv-rl mode."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, ClassVar, cast

import torch

from pv_rl.errors import ConfigError
from pv_rl.losses import check_policy_loss, resolve_mode, scale_advantages

__all__ = ["Weighted"]

Base = cast(Any, object)  # the trainer comes after the mixin
TESTED = "0.3.0"
SEAM = ["self", "data", "mini_batch_boundaries", "prompt_boundaries"]
OLD = torch.linspace(-3.0, -0.1, 8).view(4, 2)
ADVANTAGES = torch.tensor([[4.0, 2], [-3, -5], [1, 3], [-2, -6]])


class Weighted(Base):
    """Put it before SkyRL's trainer: `class Trainer(Weighted, RayPPOTrainer): mode = "balanced:0.6"`.

    With scope `prompt` the weights are those of the step, times its number of mini-batches; with scope `batch` each
    mini-batch has weights of its own. A row whose `loss_mask` is 0 does not count.

    Raises:
        LossModeError: `mode` cannot be read, `check_policy_loss` refuses the policy loss, an advantage is not finite.
        ConfigError: `loss_reduction` or the policy loss is not served, or SkyRL's seam has changed.
    """

    mode: ClassVar[str] = "balanced"  # a spec, see pv_rl.losses.resolve_mode

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        resolve_mode(cls.mode)
        seam = getattr(super(), "_normalize_advantages", None)
        found = seam and list(inspect.signature(seam).parameters)
        if found != SEAM:
            raise ConfigError(
                f"the base class of {cls.__name__} has _normalize_advantages({found}); SkyRL {TESTED} has it with "
                f"{SEAM}. Write class {cls.__name__}(Weighted, RayPPOTrainer), and install skyrl=={TESTED}."
            )

    def __init__(self, cfg: Any, *args: Any, **rest: Any) -> None:
        algorithm, rows = cfg.trainer.algorithm, torch.eye(4)[:, :, None].expand(4, 4, 2)
        check_policy_loss(partial(_policy_loss, algorithm), OLD * 0.95, ADVANTAGES)
        parts = [_policy_loss(algorithm, OLD * 0.95, ADVANTAGES * row, row) for row in rows]
        whole, name = _policy_loss(algorithm, OLD * 0.95, ADVANTAGES), algorithm.policy_loss_type
        adds_up = name != "clip_cov" and torch.isclose(torch.stack(parts).sum(), whole)
        if algorithm.loss_reduction != "token_mean" or not adds_up:
            raise ConfigError(
                f"mode={self.mode} needs loss_reduction=token_mean and a policy loss that only adds up tokens, unlike "
                f"clip_cov; they are {algorithm.loss_reduction} and {name} in trainer.algorithm."
            )
        super().__init__(cfg, *args, **rest)

    def _normalize_advantages(self, data: Any, mini_batch_boundaries: Any, prompt_boundaries: Any) -> Any:
        data = super()._normalize_advantages(data, mini_batch_boundaries, prompt_boundaries)
        advantages, mask, mode = data["advantages"], data["loss_mask"], resolve_mode(self.mode)
        groups = [group for group, (start, end) in enumerate(prompt_boundaries) for _ in range(start, end)]
        # SkyRL has divided each mini-batch by its own tokens; rows after the last one are padding.
        parts = [slice(start, end) for start, end in mini_batch_boundaries]
        tokens = torch.cat([mask[part].sum().clamp(min=1).expand(part.stop - part.start) for part in parts])
        if mode.scope == "prompt":
            tokens, parts = tokens * len(parts), [slice(0, len(tokens))]
        for part in parts:
            rows, counts = advantages[part], mask[part]
            advantages[part] = scale_advantages(mode, rows, counts, groups[part], tokens[part])
        return data


def _policy_loss(algorithm: Any, log_probs: Any, advantages: Any, mask: Any = 1.0) -> torch.Tensor:
    """The policy loss of a few short rows, as SkyRL's workers compute it."""
    from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry

    inputs = {"config": algorithm, "loss_mask": mask * torch.ones(4, 2), "rollout_logprobs": OLD}
    return PolicyLossRegistry.get(algorithm.policy_loss_type)(log_probs, OLD, advantages, **inputs)[0]
