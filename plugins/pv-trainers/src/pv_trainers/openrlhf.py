"""OpenRLHF adapter: adds a weighting to the advantages of its experience maker (tested with openrlhf 0.11.2).

`train_openrlhf` starts OpenRLHF with it. With `actor.loss_agg_mode=seq-mean-token-mean` its trainers divide by the `N`
responses of an update and by the tokens `|o_i|` of each, on every rank and however the update is cut.
"""

from functools import partial

import torch
from openrlhf.models import PolicyLoss
from openrlhf.trainer.ppo_utils import experience_maker
from torch.nn.utils.rnn import pad_sequence

from pv_rl.errors import ConfigError, SetupError
from pv_rl.losses import check_policy_loss, resolve_mode, scale_advantages

__all__ = ["weigh"]


def weigh(maker, mode: str) -> None:
    """Add the weighting `mode` to a `RemoteExperienceMaker`, and check its settings."""
    args = maker.args
    rows, size = args.rollout.batch_size * args.rollout.n_samples_per_prompt, args.train.batch_size
    if rows % size:
        raise ConfigError(f"train.batch_size={size} has to divide the {rows} responses of a rollout.")
    _check(args.actor)
    compute = maker.compute_advantages_and_returns
    maker.compute_advantages_and_returns = partial(_weighted, resolve_mode(mode), args, compute)


def _weighted(mode, args, compute, experiences):
    """The result of `compute`, with advantages times `w_i * N * |o_i|`. A reward of NaN abstains: its weight is 0."""
    size, sizes = args.rollout.n_samples_per_prompt, [len(e.index) for e in experiences]
    index = torch.tensor([i for e in experiences for i in e.index])
    rewards = torch.cat([e.rewards.float() for e in experiences])
    penalize = experience_maker.apply_length_penalties  # compute calls it before it takes the baseline

    def fill(experiences, args):
        penalize(experiences, args)
        shaped = torch.cat([e.rewards for e in experiences]).where(~rewards.isnan(), torch.nan)
        means = shaped[index.argsort()].view(-1, size).nanmean(-1).nan_to_num()[index // size]
        filled = torch.where(shaped.isnan(), means, shaped)
        for e, given, whole in zip(experiences, rewards.split(sizes), filled.split(sizes), strict=True):
            e.rewards, e.info["reward"], e.info["abstained"] = whole.clone(), whole, given.isnan().float()

    experience_maker.apply_length_penalties = fill
    try:
        experiences = compute(experiences)
    finally:
        experience_maker.apply_length_penalties = penalize
    mask = pad_sequence([row != 0 for e in experiences for row in e.action_mask], batch_first=True)
    advantages = pad_sequence([row for e in experiences for row in e.advantages], batch_first=True)
    if not (lengths := mask.sum(-1)).all() and len(mask) != args.train.batch_size:
        raise ConfigError(
            "a response has no action token, so OpenRLHF divides one of several updates by fewer responses. Return at "
            "least one token, or set train.batch_size to all responses of a rollout: one update."
        )
    divisors = (lengths > 0).sum().clamp(min=1) * lengths.clamp(min=1)  # N * |o_i|
    kept = mask & ~rewards.isnan()[:, None]
    scaled = scale_advantages(mode, advantages, kept, (index // size).tolist(), divisors)
    for e, rows in zip(experiences, scaled.split(sizes), strict=True):
        e.advantages = rows[:, : e.advantages.shape[1]]
    return experiences


def _check(actor) -> None:
    """Refuse settings `actor.*` whose policy loss is not the mean over sequences of the mean over tokens."""
    mask, old = torch.tensor([[1, 0, 0], [1, 1, 1]]), torch.full((2, 3), -1.0)
    try:
        settings = {"policy_loss_type": actor.policy_loss_type, "dual_clip": actor.dual_clip}
        loss = PolicyLoss(token_level_loss=actor.loss_agg_mode == "token-mean", **settings)
        info = {"action_mask": mask, "dp_size": 1, "batch_num_tokens": 4.0, "global_batch_size": 2.0}
        found = float(loss(old, old, torch.tensor([[1.0], [-2.0]]), **info)[0])
    except TypeError as error:
        raise SetupError(f"PolicyLoss is not that of openrlhf 0.11.2; install it: {error}") from error
    if abs(found - 0.5) > 1e-6:
        wanted = "Set --actor.loss_agg_mode seq-mean-token-mean; pv-rl then replaces its weights."
        raise ConfigError(f"{actor.loss_agg_mode=}: its divisor differs between updates. {wanted}")
    signs = torch.tensor([1.0, -2.0])
    check_policy_loss(lambda new, a: loss(new, old, a[:, None], **info)[0], old * 0.9, signs)
