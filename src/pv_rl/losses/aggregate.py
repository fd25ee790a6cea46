"""Aggregation: from lengths to weights for a whole step, and from weights to a loss."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from pv_rl.errors import LossModeError
from pv_rl.losses.mode import LossMode, resolve_mode
from pv_rl.losses.stats import step_stats

__all__ = ["response_weights", "weighted_sum"]


def response_weights(
    spec: str | LossMode,
    lengths: Tensor | Sequence[int],
    groups: Sequence[Hashable],
    advantages: Tensor | Sequence[float] | None = None,
) -> Tensor:
    """Weights of a whole step, fixed once, to travel with their rows.

    Example: `response_weights("balanced:0.6", [1, 2, 5], "aaa")` is `[0.25, 0.15, 0.09]`.

    Args:
        spec: a spec string, see `resolve_mode`, or a mode.
        lengths: (B,) response tokens that count; 0 for a row that does not count.
        groups: one hashable id a row, equal for responses of the same prompt.
        advantages: (B,) one number a row, see `step_stats`; only a mode that uses signs (`ba`) needs it.

    Returns:
        (B,) float64 `w`; 0 where the length is 0, and all 0 if no row counts. For `grpo`, `dapo`, `balanced` and `ba`,
        `sum(w * lengths) == 1`.

    Raises:
        LossModeError: the spec cannot be read, `lengths` and `groups` do not make a step, or the mode (a plugin's)
            gives something else than weights.
    """
    mode = spec if isinstance(spec, LossMode) else resolve_mode(spec)
    try:
        lengths = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError) as error:
        raise LossModeError(f"lengths {lengths!r} are not numbers of tokens: {error}") from error
    return mode.weights(*step_stats(lengths, groups, advantages))


def weighted_sum(loss_mat: Tensor, loss_mask: Tensor, weights: Tensor) -> Tensor:
    """The loss of the rows at hand: `sum_i w_i * sum_t mask_it * loss_it`.

    Nothing here divides: every normaliser is in the weights. Sums of parts of a batch add up to the sum of
    the whole, so the gradient does not depend on how rows are cut into micro-batches.

    Args:
        loss_mat: (B, L), any float dtype; computed in float32 at least. Entries outside the mask may be NaN.
        loss_mask: (B, L), 1 or True where a token counts.
        weights: (B,).

    Returns:
        Scalar, float32 at least.

    Raises:
        LossModeError: the shapes differ from these; broadcasting would give another row's weight to a row.
    """
    if loss_mat.dim() != 2 or loss_mask.shape != loss_mat.shape or weights.shape != loss_mat.shape[:1]:
        raise LossModeError(
            f"weighted_sum got loss_mat {tuple(loss_mat.shape)}, loss_mask {tuple(loss_mask.shape)} and weights "
            f"{tuple(weights.shape)}. It takes the shapes (B, L), (B, L) and (B,): one weight for each row."
        )
    dtype = torch.promote_types(loss_mat.dtype, torch.float32)
    mask = loss_mask if loss_mask.dtype == torch.bool else loss_mask != 0
    # One masked copy of loss_mat and nothing else of its size, forward or backward.
    per_response = torch.where(mask, loss_mat, 0.0).sum(dim=-1, dtype=dtype)
    return (per_response * weights.to(device=loss_mat.device, dtype=dtype)).sum()
