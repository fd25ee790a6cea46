"""Contribution of each response: its advantage, and the token weight that `pv_rl.losses` computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from pv_rl.errors import ConfigError
from pv_rl.losses import BatchStats, LossMode, ResponseStats, resolve_mode

__all__ = ["advantages", "prompt_mode", "token_weights"]


def advantages(reward: NDArray[np.float64]) -> NDArray[np.float64]:
    """GRPO's, as in verl: `(r - mean) / (std + 1e-6)` in each group, std with n - 1.

    Args:
        reward: (groups, G).
    """
    centred = reward - reward.mean(axis=1, keepdims=True)
    return centred / (reward.std(axis=1, ddof=1, keepdims=True) + 1e-6)


def token_weights(
    mode: LossMode, length: NDArray[np.int64], group: int, advantage: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """`pv_rl.losses.response_weights` of each run's step, in one call and without its loop over the ids of groups.

    Args:
        mode: the weighting, of scope `prompt`: it adds up no tokens of several prompts, so that runs can stand below
            each other.
        length: (runs, P * group) tokens, the responses of a prompt side by side.
        group: responses of a prompt, G.
        advantage: (runs, P * group), for a mode that uses its signs.

    Returns:
        (runs, P * group) weights.
    """
    tokens = torch.as_tensor(length.ravel(), dtype=torch.float64)
    responses = ResponseStats(
        length=tokens,
        group_size=torch.full_like(tokens, group),
        group_tokens=tokens.reshape(-1, group).sum(dim=1).repeat_interleave(group),
        group=torch.arange(len(tokens) // group).repeat_interleave(group),
        sign=None if advantage is None else torch.as_tensor(advantage.ravel()).sign(),
    )
    rows = length.shape[1]
    # P, N and T of one run; T is used by scope `batch` alone
    batch = BatchStats(num_prompts=rows // group, num_responses=rows, num_tokens=0)
    with _one_thread():
        return mode.weights(responses, batch).numpy().reshape(length.shape)


def prompt_mode(spec: str) -> LossMode:
    """Read a spec of scope `prompt`.

    Raises:
        ConfigError: the scope is `batch`.
        LossModeError: the spec cannot be read.
    """
    mode = resolve_mode(spec)
    if mode.scope != "prompt":
        raise ConfigError(
            f"mode {spec!r} weighs all prompts of a step as one group, and here the steps of several runs are weighed "
            f"together; give {spec.partition('@')[0]!r}"
        )
    return mode


@contextmanager
def _one_thread() -> Iterator[None]:
    """A few thousand numbers are no work for torch's threads: two busy cores took ten times as long with them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
