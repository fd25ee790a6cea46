"""NeMo-RL adapter: adds weightings of pv-rl to NeMo-RL's GRPO trainers; a launcher starts NeMo-RL's own script.

    python -m pv_trainers.nemo_rl examples/run_grpo.py --config c.yaml ++grpo.adv_estimator.weighting=balanced:0.6

NeMo-RL chooses its estimator in an if-chain without a registry, so the launcher wraps it. Tested at 7ea279a.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch
from torch import Tensor

from pv_rl.errors import LossModeError
from pv_rl.losses import resolve_mode, scale_advantages
from pv_trainers.launch import run_script, starting

__all__ = ["install", "scale_step", "weigh"]


def install() -> None:
    """Add the weighting to each estimator that NeMo-RL creates. Call it once, before you import NeMo-RL."""
    from nemo_rl.algorithms import grpo  # pyright: ignore[reportMissingImports]

    create = getattr(grpo, "_create_advantage_estimator", lambda: None)
    if list(inspect.signature(create).parameters) != ["master_config"]:
        raise LossModeError(
            "nemo_rl.algorithms.grpo has no _create_advantage_estimator(master_config), as at commit 7ea279a. Use that "
            "commit, or call pv_trainers.nemo_rl.weigh(estimator, config) where NeMo-RL creates its estimator."
        )
    grpo._create_advantage_estimator = lambda config: weigh(create(config), config)


def weigh(estimator: Any, config: Any) -> Any:
    """Make an estimator weigh its advantages by `grpo.adv_estimator.weighting`, or raise a LossModeError."""
    spec = getattr(config.grpo.adv_estimator, "weighting", None)
    if not isinstance(spec, str):
        raise LossModeError(f"grpo.adv_estimator.weighting is {spec!r}. Set a mode, such as balanced:0.6.")
    if hasattr(config, "async_rl"):
        raise LossModeError("async_rl is set: the SingleController sees a part of a step. Use run_grpo.py.")
    for name, value in vars(config.grpo).items():
        if value is not None and (name.startswith("advantage_clip") or name.endswith("_advantage")):
            raise LossModeError(f"grpo.{name} changes scaled advantages. Set it to null, or drop weighting.")
    by_token, rows = config.loss_fn.token_level_loss, config.policy["train_global_batch_size"]
    estimate, mode = estimator.compute_advantage, resolve_mode(spec).spec

    def compute_advantage(prompt_ids: Tensor, rewards: Tensor, mask: Tensor, **others: Any) -> Tensor:
        advantages = estimate(prompt_ids=prompt_ids, rewards=rewards, mask=mask, **others)
        return scale_step(mode, advantages, mask, prompt_ids, rows, by_token)

    estimator.compute_advantage = compute_advantage
    return estimator


def scale_step(
    mode: str, advantages: Tensor, mask: Tensor, prompts: Tensor, rows: int, by_token: bool
) -> Tensor:
    """(B, L) scaled advantages, of advantages and mask (B, L), prompts (B, S) and the rows of an update, in order."""
    if not ((mask == 0) | (mask == 1)).all():
        raise LossModeError("A loss_multiplier is a fraction. Make it 0 or 1, or train without weighting.")
    mask = mask.index_fill(1, torch.tensor([0], device=mask.device), 0)  # no token predicts the first one
    groups = torch.unique(prompts, dim=0, return_inverse=True)[1].tolist()
    parts = mask.sum(dim=-1).double().split(rows)  # each update divides by its own tokens, or rows
    divisors = [part.sum().expand(len(part)) if by_token else (part > 0).sum() * part for part in parts]
    size = len(mask) if resolve_mode(mode).scope == "prompt" else rows
    divisor = torch.cat(divisors).clamp(min=1) * -(-size // rows)
    cuts = [slice(first, first + size) for first in range(0, len(mask), size)]
    of = [(advantages[cut], mask[cut], groups[cut], divisor[cut]) for cut in cuts]
    return torch.cat([scale_advantages(mode, *part) for part in of])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pv_trainers.nemo_rl SCRIPT ARGUMENTS")
    with starting("nemo_rl", install="Start it with the Python of a clone of github.com/NVIDIA-NeMo/RL."):
        install()
    run_script()
