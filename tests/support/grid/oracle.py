"""The gradient of a step, from the paper's formula alone: float64, one row at a time, no padding, no ranks.

Written to be read next to the paper. Imports neither verl nor pv_rl, so that nothing of theirs can be
wrong here in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Row:
    """One response of a step."""

    group: Hashable
    """The prompt it answers."""
    prompt: Tensor
    """(prompt_len,) token ids."""
    response: Tensor
    """(L,) token ids."""
    mask: Tensor
    """(L,) 1 for a token that counts. All zero: the row does not count (padding, abstained)."""
    old_log_probs: Tensor
    ref_log_probs: Tensor
    advantages: Tensor
    is_weights: Tensor
    """(L,) each; `is_weights` multiplies the policy term, 1 if there is no rollout correction."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What each token contributes, before it is weighed."""

    policy: str = "vanilla"
    clip_low: float = 0.2
    clip_high: float = 0.2
    clip_c: float = 3.0
    kl: str | None = None
    kl_coef: float = 0.0
    entropy_coeff: float = 0.0


def token_losses(model: torch.nn.Module, row: Row, loss: Loss) -> Tensor:
    """(L,) the loss of each token of a response: policy - entropy_coeff * entropy + kl_coef * KL."""
    predictions, log_prob = predict(model, row.prompt, row.response)
    total = policy_loss(log_prob, row, loss) * row.is_weights
    if loss.entropy_coeff:
        total = total + loss.entropy_coeff * (predictions.exp() * predictions).sum(dim=-1)
    if loss.kl:
        total = total + loss.kl_coef * kl_divergence(log_prob, row.ref_log_probs, loss.kl)
    return total


def predict(model: torch.nn.Module, prompt: Tensor, response: Tensor) -> tuple[Tensor, Tensor]:
    """(L, vocabulary) log-probabilities before each response token, and (L,) those of the tokens themselves."""
    logits = model(input_ids=torch.cat([prompt, response])[None]).logits[0]
    predictions = torch.log_softmax(logits[len(prompt) - 1 : -1], dim=-1)
    return predictions, predictions.gather(1, response[:, None])[:, 0]


def policy_loss(log_prob: Tensor, row: Row, loss: Loss) -> Tensor:
    """(L,) the policy term, as published: PPO with dual clip, GSPO (token form), GPG, CISPO."""
    advantage = row.advantages
    low, high = 1 - loss.clip_low, 1 + loss.clip_high
    if loss.policy == "gpg":  # arXiv 2504.02546
        return -advantage * log_prob
    if loss.policy == "gspo":  # arXiv 2507.18071, eq. for GSPO-token: sg[s_i] * pi / sg[pi]
        log_ratios = (log_prob - row.old_log_probs) * row.mask
        sequence_ratio = torch.exp(log_ratios.sum() / row.mask.sum()).detach()
        ratio = sequence_ratio * torch.exp(log_prob - log_prob.detach())
        return -torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
    ratio = torch.exp((log_prob - row.old_log_probs).clamp(-20, 20))
    if loss.policy == "cispo":  # arXiv 2506.13585: the clipped ratio is a constant
        return -ratio.clamp(low, high).detach() * advantage * log_prob
    if loss.policy == "vanilla":  # arXiv 1707.06347, with the dual clip of arXiv 1912.09729
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
        dual = torch.maximum(surrogate, loss.clip_c * advantage)
        return -torch.where(advantage < 0, dual, surrogate)
    raise ValueError(f"no such policy loss: {loss.policy}")


def kl_divergence(log_prob: Tensor, ref_log_prob: Tensor, estimator: str) -> Tensor:
    """(L,) Schulman's estimators k1, k2 and k3, http://joschu.net/blog/kl-approx.html."""
    difference = ref_log_prob - log_prob
    if estimator in ("kl", "k1"):
        return -difference
    if estimator in ("mse", "k2"):
        return difference**2 / 2
    if estimator in ("low_var_kl", "k3"):
        difference = difference.clamp(-20, 20)
        return (torch.exp(difference) - difference - 1).clamp(-10, 10)
    raise ValueError(f"no such KL estimator: {estimator}")


def row_gradient(model: torch.nn.Module, row: Row, loss: Loss) -> Tensor:
    """(parameters,) gradient of `sum_t mask_t * loss_t`: the row's share of the step, not yet weighed."""
    model.zero_grad()
    (token_losses(model, row, loss) * row.mask).sum().backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])


def weights_of(
    spec: str,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    longest: int,
    advantages: Sequence[float] = (),
) -> list[float]:
    """w_i of each row, 0 for a row of length 0, which is in no count.

    Args:
        spec: one of ours, `balanced:0.6`, `vl_norm:0.75:4000@batch`, or one of verl's three, over the batch at hand.
        lengths: |o_i|, tokens that count.
        groups: the prompt of each row.
        longest: the configured response length, which `seq-mean-token-sum-norm` divides by.
        advantages: of each row, whose signs `ba` needs.
    """
    counted = [i for i, length in enumerate(lengths) if length > 0]
    N = len(counted)
    T = sum(lengths)
    if spec in ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm"):
        rule = {
            "token-mean": lambda i: 1 / T,
            "seq-mean-token-mean": lambda i: 1 / (N * lengths[i]),
            "seq-mean-token-sum-norm": lambda i: 1 / (N * longest),
        }[spec]
        return [rule(i) if i in counted else 0.0 for i in range(len(lengths))]

    mode, _, scope = spec.partition("@")
    name, *numbers = mode.split(":")
    if scope == "batch":
        groups = ["all"] * len(lengths)  # the whole batch is one group
    P = len({groups[i] for i in counted})
    weights = [0.0] * len(lengths)
    for i in counted:
        group = [j for j in counted if groups[j] == groups[i]]
        G = len(group)
        grpo = 1 / (P * G * lengths[i])
        dapo = 1 / (P * sum(lengths[j] for j in group))
        if name == "dr_grpo":  # arXiv 2503.20783
            weights[i] = 1 / (P * G * float(numbers[0]))
        elif name == "ba":  # arXiv 2605.04077: the mean over tokens of each sign, then n_s of G
            signs = [(advantage > 0) - (advantage < 0) for advantage in advantages]
            same = [j for j in group if signs[j] == signs[i]]
            weights[i] = len(same) / G / sum(lengths[j] for j in same) / P
        elif name == "vl_norm":  # arXiv 2509.07558
            alpha, L = map(float, numbers)
            weights[i] = lengths[i] ** -alpha / sum(lengths[j] ** -alpha for j in group) / (P * L)
        else:
            eta = {"grpo": 1.0, "dapo": 0.0, "balanced": float(numbers[0]) if numbers else 0.6}[name]
            weights[i] = eta * grpo + (1 - eta) * dapo
    return weights


def update_weights(
    spec: str, rows: Sequence[Row], chosen: Sequence[int], mini_batches: float, longest: int
) -> dict[int, float]:
    """w_i of the rows of one update, by their index in the step.

    With scope `prompt` the weights are those of the step, times its number of mini-batches, so that an update
    has mass 1 on average. With scope `batch`, and with verl's modes, the mini-batch is a step of its own.
    """
    if "@batch" not in spec and "-mean" not in spec:
        lengths = [int(row.mask.sum()) for row in rows]
        weights = weights_of(spec, lengths, [row.group for row in rows], longest, _totals(rows))
        return {i: mini_batches * weights[i] for i in chosen}
    lengths = [int(rows[i].mask.sum()) for i in chosen]
    members = [rows[i] for i in chosen]
    weights = weights_of(spec, lengths, [row.group for row in members], longest, _totals(members))
    return dict(zip(chosen, weights, strict=True))


def _totals(rows: Sequence[Row]) -> list[float]:
    return [float((row.advantages * row.mask).sum()) if row.mask.any() else 0.0 for row in rows]
