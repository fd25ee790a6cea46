"""tinker-cookbook adapter: adds a weighting to its RL loop (tested with tinker-cookbook 0.6.1, tinker 0.38.0).

The service sums the loss over tokens. So the adapter multiplies an advantage by the weight of its tokens and by `T`,
the number of tokens in the step. The factors are then 1 on average, as in that sum, and a KL penalty keeps its meaning.
"""

import inspect
from functools import partial

import torch
from tinker_cookbook.rl import train
from tinker_cookbook.rl.data_processing import compute_advantages, trajectory_to_data

from pv_rl.errors import ConfigError, SetupError
from pv_rl.losses import resolve_mode, scale_advantages

__all__ = ["weigh", "weighted_advantages"]

SUMS = ("importance_sampling", "ppo", "cispo", "gspo")
"""Losses that are documented as a sum over tokens, proportional to the advantage."""


def weigh(config, mode: str, mean: bool = False) -> None:
    """Make `tinker_cookbook.rl.train.main(config)`, in this process, train with `mode`.

    Args:
        config: `train.Config`; a ConfigError if the weights would not be those of the mode.
        mode: a spec of pv-rl, for example `balanced:0.6`.
        mean: whether the weights are those of the formula, without `T`.
    """
    scope, loss, stream = resolve_mode(mode).scope, config.training_loss_fn(), config.stream_minibatch_config
    if loss not in SUMS:
        raise ConfigError(
            f"the loss {loss!r} is not known to be proportional to the advantage. Use one of {SUMS}."
        )
    if mean and config.kl_penalty_coef > 0:
        raise ConfigError("mean=True divides the advantages by T, but not the KL penalty. Use mean=False.")
    minibatches = stream.num_minibatches if stream else 1
    unknown = not mean or scope == "batch" or config.remove_constant_reward_groups
    if minibatches > 1 and unknown:
        raise ConfigError(
            f"num_minibatches={minibatches}: the first is sent before all groups of the update are known. Set "
            "it to 1, or use mean=True, a mode with the scope prompt, and remove_constant_reward_groups=False."
        )
    if list(inspect.signature(train.compute_advantages).parameters) != ["trajectory_groups_P"]:
        raise SetupError(
            "rl.train.compute_advantages is not that of tinker-cookbook 0.6.1. Install that version."
        )
    updates = 1 / minibatches if stream else config.num_substeps
    train.compute_advantages = partial(weighted_advantages, mode, updates if mean else None)


def weighted_advantages(mode: str, updates: float | None, trajectory_groups_P: list) -> list[torch.Tensor]:
    """Like `compute_advantages`, with each advantage multiplied by the weight of its trajectory's tokens.

    Args:
        mode: a spec of pv-rl.
        updates: the factor of the weights, the number of updates for a mass of 1 each; None: `T`.
        trajectory_groups_P: all groups of the step.
    """
    advantages_P = compute_advantages(trajectory_groups_P)
    trajectories = [trajectory for group in trajectory_groups_P for trajectory in group.trajectories_G]
    if not trajectories:
        return advantages_P
    masks = [
        [datum.loss_fn_inputs["mask"].to_torch() for datum in trajectory_to_data(trajectory, 0.0, False)]
        for trajectory in trajectories
    ]
    lengths = torch.tensor([int(sum(mask.sum() for mask in of_trajectory)) for of_trajectory in masks])
    counts = torch.arange(max(1, int(lengths.max()))) < lengths[:, None]
    prompts = [i for i, group in enumerate(trajectory_groups_P) for _ in group.trajectories_G]
    most = max(1, sum(map(len, masks)))  # the cookbook makes no more updates than there are datums
    factor = max(1, int(lengths.sum())) if updates is None else min(updates, most)
    scaled = scale_advantages(mode, torch.cat(advantages_P), counts, prompts, factor)
    return list(scaled.split([len(advantages_G) for advantages_G in advantages_P]))
