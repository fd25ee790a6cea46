"""Diagnostics of a step's weights: numbers for the log."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from pv_rl.losses.aggregate import response_weights
from pv_rl.losses.mode import LossMode

__all__ = ["diagnose", "effective_number", "length_quartiles"]

VERDICTS = {"verdict_true": True, "verdict_false": False, "verdict_none": None}


def diagnose(
    mode: LossMode,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float],
    verdicts: Sequence[bool | None] | None = None,
) -> dict[str, float]:
    """Where the weight of one step goes. Rows of length 0 are outside everything.

    The share of a set of responses is its part of the mass `sum_i w_i |o_i|`, so that shares of all lengths, of all
    signs and of all verdicts add up to 1.

    Args:
        mode: the weighting; with scope `batch` the step is taken as one group.
        lengths: (B,) response tokens that count.
        groups: B prompt ids.
        advantages: (B,) one number a response, of which the sign counts.
        verdicts: B verdicts, None where a trace has none; or None where verdicts are not known at all.

    Returns:
        `weight_share/length_q1` (shortest) to `_q4`, and `weight_share/advantage_positive`, `_negative`, `_zero` (and
        `_nan` where an advantage is none). With verdicts each of these split, `..._verdict_true`, `_false`, `_none`,
        and `weight_share/verdict_...` and `response_length/verdict_...` (tokens, where there is such a response).
        `effective_responses`, the exponential of the entropy of the shares, between 1 and the number of responses, and
        `effective_responses_fraction` of that number; `groups_without_signal`, the fraction of prompts whose
        advantages are all 0; and the mode's own numbers, for example `eta`. Empty if no row counts.
    """
    length = torch.as_tensor(lengths, dtype=torch.float64)
    mass = response_weights(mode, lengths, groups, advantages if mode.signs else None) * length
    if not mass.sum() > 0:
        return {}
    share = mass / mass.sum()
    counts = length > 0
    advantage = torch.as_tensor(advantages, dtype=torch.float64)

    sets = {f"length_q{q}": members for q, members in enumerate(length_quartiles(length), start=1)}
    sets |= {
        "advantage_positive": advantage > 0,
        "advantage_negative": advantage < 0,
        "advantage_zero": advantage == 0,
    }
    if advantage[counts].isnan().any():
        sets["advantage_nan"] = advantage.isnan()
    numbers = {f"weight_share/{name}": share[members].sum().item() for name, members in sets.items()}
    if verdicts is not None:
        numbers |= _by_verdict(share, length, counts, sets, verdicts)
    numbers["effective_responses"] = effective_number(share)
    numbers["effective_responses_fraction"] = numbers["effective_responses"] / int(counts.sum())
    numbers["groups_without_signal"] = _without_signal(groups, counts, advantage)
    return numbers | dict(mode.parameters)


def effective_number(share: Tensor) -> float:
    """`exp(-sum_i s_i ln s_i)` of shares (B,) that add up to 1: how many equal ones would be as even."""
    return (-torch.special.xlogy(share, share).sum()).exp().item()


def length_quartiles(length: Tensor) -> list[Tensor]:
    """Four masks (B,) of about as many rows, from short to long; rows of length 0 are in none.

    Equal lengths are in the same quartile, the shortest that holds one of them: lengths 7, 7, 7, 7 are all in the
    first.
    """
    ordered = length[length > 0].sort().values
    if not len(ordered):
        return [torch.zeros_like(length, dtype=torch.bool)] * 4
    ends = [ordered[-(-len(ordered) * quarter // 4) - 1] for quarter in range(1, 5)]
    starts = [ordered.new_zeros(()), *ends]
    return [(length > start) & (length <= end) for start, end in zip(starts, ends, strict=False)]


def _by_verdict(
    share: Tensor,
    length: Tensor,
    counts: Tensor,
    sets: dict[str, Tensor],
    verdicts: Sequence[bool | None],
) -> dict[str, float]:
    numbers = {}
    for said, verdict in VERDICTS.items():
        rows = counts & torch.tensor([given is verdict for given in verdicts])
        numbers[f"weight_share/{said}"] = share[rows].sum().item()
        for name, members in sets.items():
            numbers[f"weight_share/{name}_{said}"] = share[rows & members].sum().item()
        if rows.any():
            numbers[f"response_length/{said}"] = length[rows].mean().item()
    return numbers


def _without_signal(groups: Sequence[Hashable], counts: Tensor, advantage: Tensor) -> float:
    signal: dict[Hashable, bool] = {}
    for group, row_counts, row_advantage in zip(groups, counts.tolist(), advantage.tolist(), strict=True):
        if row_counts:
            signal[group] = signal.get(group, False) or row_advantage != 0
    return 1.0 - sum(signal.values()) / len(signal)
