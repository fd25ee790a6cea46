"""Scaled advantages: any weighting in a trainer whose loss is a sum over tokens divided by a number.

Clipped surrogates (PPO, DAPO, GSPO, CISPO, REINFORCE) are homogeneous of degree one in a response's advantage: a factor
c > 0 on `A_i` is a factor c on the loss of its tokens. So a trainer that computes `sum_it loss_it / D` computes

    sum_i w_i * sum_t loss_it(A_i)    from advantages    A_i * w_i * D

however it cuts the rows, as long as its `D` is the one that is given here. KL and entropy terms do not depend on the
advantage, so they keep the trainer's own aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from pv_rl.errors import LossModeError
from pv_rl.losses.aggregate import response_weights
from pv_rl.losses.mode import LossMode, resolve_mode

__all__ = ["check_policy_loss", "scale_advantages"]


def scale_advantages(
    mode: str | LossMode,
    advantages: Tensor,
    mask: Tensor,
    groups: Sequence[Hashable],
    denominator: float | Tensor,
) -> Tensor:
    """Advantages with which a trainer's own aggregation gives the weights of `mode`: `A_it * w_i * D_i`.

    Example: a trainer divides by all tokens. For lengths 1, 2, 5 of one prompt and D = 8 the factors of `balanced:0.6`
    are 2.0, 1.2, 0.72; those of `dapo` are 1.

    Args:
        mode: a spec, see `resolve_mode`, or a mode.
        advantages: (B,), or (B, L) one a token, of all the rows in whose groups there is a response of this step, on
            whichever rank they are.
        mask: (B, L), 1 or True where a token counts; a row without any does not count.
        groups: one hashable id a row, equal for responses of the same prompt.
        denominator: `D`, by which the trainer divides the sum over tokens: the tokens of the batch for a token mean, 1
            for a sum; or (B,), one a row, for example `N * |o_i|` for a mean over `N` sequences of means over tokens.
            Of a batch that is used for `M` updates, each divided by its own tokens, `M` times those tokens.

    Returns:
        As `advantages` in shape and device, in float32 at least; 0 for a row that does not count, and outside the mask.

    Raises:
        LossModeError: the shapes differ from these, the denominator of a row that counts is not positive, an advantage
            that counts is not finite, also once it is scaled, or `response_weights` refuses the mode or the groups.
    """
    advantages, counts = torch.as_tensor(advantages), torch.as_tensor(mask) != 0
    rows, dtype = advantages.shape[:1], torch.promote_types(advantages.dtype, torch.float32)
    if counts.dim() != 2 or advantages.shape not in (rows, counts.shape) or counts.shape[:1] != rows:
        raise LossModeError(
            f"scale_advantages got advantages {tuple(advantages.shape)} and mask {tuple(counts.shape)}; it takes (B,) "
            "or (B, L), and (B, L)"
        )
    lengths = counts.sum(dim=-1).cpu()  # float64 is not on every device, and these are one number a row
    try:
        divisor = torch.as_tensor(denominator, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise LossModeError(f"scale_advantages got the denominator {denominator!r}: {error}") from error
    if divisor.shape not in ((), rows) or not ((divisor > 0) & divisor.isfinite() | (lengths == 0)).all():
        raise LossModeError(
            f"scale_advantages got the denominator {divisor.tolist()}; it is a number > 0, or one for each of the "
            f"{len(advantages)} rows"
        )
    values = torch.where(counts if advantages.dim() == 2 else counts.any(dim=-1), advantages, 0.0).to(dtype)
    mode = mode if isinstance(mode, LossMode) else resolve_mode(mode)
    sums = (values if values.dim() == 1 else values.sum(dim=-1)).cpu() if mode.signs else None
    scale = (response_weights(mode, lengths, groups, sums) * divisor.where(lengths > 0, 1.0)).to(values)
    scaled = values * (scale if values.dim() == 1 else scale[:, None])
    if (bad := ~torch.isfinite(scaled)).any():
        place = tuple(bad.nonzero()[0].tolist())
        raise LossModeError(
            f"the advantage of row {place[0]} is {advantages[place].item()}, scaled {scaled[place].item()}; both have "
            "to be finite. Give a row without a reward a mask of zeros"
        )
    return scaled


def check_policy_loss(
    policy_loss: Callable[[Tensor, Tensor], Tensor], log_probs: Tensor, advantages: Tensor, rtol: float = 1e-4
) -> None:
    """Refuse a policy loss to which scaled advantages cannot give weights. Pass a few short rows: it runs three times.

    Example: `check_policy_loss(lambda log_probs, A: -(A[:, None] * log_probs).mean(), torch.zeros(2, 3), A)`.

    Args:
        policy_loss: from `log_probs` and `advantages` to the loss, a scalar; all else is fixed.
        log_probs: (B, L) of the policy, for example the old ones times 0.95.
        advantages: (B,) or (B, L), not 0, some of each sign.
        rtol: of the norm of the gradient by `log_probs`.

    Raises:
        LossModeError: a factor on a row's advantage is not that factor on the gradient of its log-probs alone: the
            loss has a term without the advantage, normalises or clips advantages, or has no gradient.
    """
    factors = torch.linspace(0.5, 2.0, len(advantages), dtype=advantages.dtype, device=advantages.device)
    factors = factors.view(-1, *[1] * (advantages.dim() - 1))

    def gradient(given: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = log_probs.detach().clone().requires_grad_()
            loss = policy_loss(leaf, given.clone())
            return torch.autograd.grad(loss, leaf)[0] if loss.requires_grad else torch.zeros_like(leaf)

    plain, scaled, nothing = gradient(advantages), gradient(advantages * factors), gradient(advantages * 0)
    bound = rtol * float(plain.norm())
    if not float(nothing.norm()) < bound * 1e-3:  # 0 times anything is 0, so a small KL term is seen too
        raise LossModeError(
            "this policy loss has a gradient where all advantages are 0, or none where they are not: scaled advantages "
            "do not weigh a term without the advantage. Add such a term (KL, entropy) outside the policy loss."
        )
    wanted = plain * factors.to(plain).view(-1, *[1] * (plain.dim() - 1))
    if not float((scaled - wanted).norm()) < bound:
        raise LossModeError(
            "the gradient of this policy loss is not proportional to each row's own advantage, for example because it "
            "normalises or clips advantages. Scaled advantages cannot give it weights: turn that off, or use a clipped "
            "surrogate such as PPO's."
        )
