"""Which loss_agg_mode of a verl config is ours."""

from __future__ import annotations

from pv_rl.losses import LossMode, resolve_mode

__all__ = ["STOCK_EQUIVALENT", "STOCK_MODES", "find_mode"]

STOCK_MODES = frozenset(
    {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"}
)
"""verl's own (verl/workers/config/actor.py:204). Asked first, so that a stock run never loads a plugin."""

STOCK_EQUIVALENT = {"grpo": "seq-mean-token-mean", "dapo": "token-mean"}
"""What our modes of scope `batch` are called in verl; these are handed to verl, so equal to the last bit."""


def find_mode(loss_agg_mode: str | None) -> LossMode | None:
    """The mode that a config names, or None if it is verl's own (None is verl's default, `token-mean`).

    Raises:
        LossModeError: it is neither.
    """
    if loss_agg_mode is None or loss_agg_mode in STOCK_MODES:
        return None
    return resolve_mode(loss_agg_mode)
