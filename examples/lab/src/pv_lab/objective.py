"""What an update maximises, token by token: advantages, the clipped ratio and the distance to the start.

Held to verl's own functions by `examples/lab/tests/test_lab_objective.py`. `R` runs, `B` rows of a run, `L` tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["group_advantages", "kl_terms", "policy_terms"]


def group_advantages(scores: Tensor, groups: Tensor, counts: Tensor | None = None) -> Tensor:
    """`(score - mean of its group) / (standard deviation of its group + 1e-6)`, as GRPO (arXiv 2402.03300).

    Mean and deviation are over the rows that count. One that is alone in its group keeps its score, as in verl.

    Args:
        scores: (R, B).
        groups: (B,) a number for the prompt of each row, 0 and up.
        counts: (R, B) bool, False for a row that abstains; its advantage is 0. All count if left out.
    """
    counted = torch.ones_like(scores) if counts is None else counts.to(scores.dtype)
    member = torch.nn.functional.one_hot(groups).to(scores.dtype)  # (B, groups)
    scores = scores.where(counted > 0, 0.0)
    size = counted @ member  # (R, groups)
    mean = (scores @ member / size.clamp(min=1)).where(size > 1, 0.0) @ member.T
    squares = ((scores - mean).square() * counted) @ member
    deviation = (squares / (size - 1).clamp(min=1)).sqrt().where(size > 1, 1.0) @ member.T
    return (scores - mean) / (deviation + 1e-6) * counted


def policy_terms(
    log_probs: Tensor,
    old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip: tuple[float, float],
    sequence_ratio: bool,
) -> Tensor:
    """The loss of each token, (R, B, L).

    `max(-A ratio, -A clamp(ratio, 1 - low, 1 + high))`. The ratio is that of the whole response, to the power of
    1/|o| (GSPO, arXiv 2507.18071), or with `sequence_ratio` False that of the token (PPO, without a dual clip).

    Args:
        log_probs: (R, B, L) of the policy, with its gradient.
        old: (R, B, L) of the policy that sampled.
        advantages: (R, B).
        mask: (R, B, L) True where a token counts.
    """
    change = log_probs - old
    if sequence_ratio:
        of_sequence = (change * mask).sum(-1) / mask.sum(-1).clamp(min=1)
        change = log_probs - log_probs.detach() + of_sequence.detach()[..., None]
    ratio = change.clamp(max=10.0).exp()
    low, high = clip
    gain = -advantages[..., None]
    return torch.maximum(gain * ratio, gain * ratio.clamp(1 - low, 1 + high))


def kl_terms(log_probs: Tensor, reference: Tensor) -> Tensor:
    """The KL term of each token, (R, B, L): `exp(d) - d - 1` of `d = reference - log_probs` (verl's low_var_kl)."""
    behind = (reference - log_probs).clamp(-20, 20)
    return (behind.exp() - behind - 1).clamp(-10, 10)
