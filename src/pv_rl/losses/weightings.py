"""Weightings: formulas from response lengths and signs of advantages to token weights, and the hook that adds them.

Each takes the statistics of a step, (B,) rows of length > 0, and its totals, and gives (B,) the weight of each token of
response i. Letters as in the paper: `|o_i|` tokens of response i, `G` responses of its prompt, `P` prompts, `N` in all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pv_rl.hookspecs import LossModeEntry, Parameter, hookimpl
from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["DEFAULT_ETA", "ba", "balanced", "dapo", "dr_grpo", "grpo", "pv_rl_loss_modes", "vl_norm"]

DEFAULT_ETA = 0.6
"""The paper's choice for its 8B, 14B and 32B runs."""


def grpo(responses: ResponseStats, batch: BatchStats) -> Tensor:
    """Weight of GRPO: a prompt's mass is split evenly between its responses.

        w_i = 1 / (P * G * |o_i|)

    Denominator: `P` prompts, `G` responses of the prompt, `|o_i|` tokens of the response, so that
    `sum_i w_i |o_i| = 1`. Source: the paper's w^GRPO with the mean over prompts written out; GRPO is
    arXiv 2402.03300.

    Example: one prompt, lengths 1, 2, 5: w = 1/3, 1/6, 1/15, and each response has mass 1/3.
    """
    return 1.0 / (batch.num_prompts * responses.group_size * responses.length)


def dapo(responses: ResponseStats, batch: BatchStats) -> Tensor:
    """Weight of DAPO: a prompt's mass is split evenly between its tokens.

        w_i = 1 / (P * sum_j |o_j|)

    Denominator: `P` prompts, `sum_j |o_j|` tokens of the prompt's responses, so that `sum_i w_i |o_i| = 1`.
    Source: the paper's w^DAPO with the mean over prompts written out; DAPO is arXiv 2503.14476 (which takes
    all prompts as one group: that is scope `batch`).

    Example: one prompt, lengths 1, 2, 5: w = 1/8 for all, and the responses have masses 1/8, 2/8, 5/8.
    """
    return 1.0 / (batch.num_prompts * responses.group_tokens)


def balanced(responses: ResponseStats, batch: BatchStats, eta: float = DEFAULT_ETA) -> Tensor:
    """Balanced token weighting: a share `eta` of the mass goes by response, the rest by token.

        w_i = eta * 1 / (P * G * |o_i|) + (1 - eta) * 1 / (P * sum_j |o_j|)

    Denominators as in `grpo` and `dapo`; `sum_i w_i |o_i| = 1` for every eta. Source: the paper's w^bal.

    Example: one prompt, lengths 1, 2, 5, eta 0.6: w = 0.25, 0.15, 0.09, and the masses are 0.25, 0.30, 0.45.

    Args:
        eta: in [0, 1]; 0 is `dapo`, 1 is `grpo`.
    """
    return eta * grpo(responses, batch) + (1.0 - eta) * dapo(responses, batch)


def dr_grpo(responses: ResponseStats, batch: BatchStats, max_length: float) -> Tensor:
    """Weight of Dr. GRPO: a constant, so that no response's weight depends on how long any response is.

        w_i = 1 / (P * G * L_max)

    Denominator: `P` prompts, `G` responses of the prompt, `L_max` a constant of the run, in general the longest
    response that it allows. With scope `batch` it is `1 / (N * L_max)`. The mass `sum_i w_i |o_i|` is the mean
    length over `L_max`, not 1: a shorter step is a smaller update, on purpose. Source: arXiv 2503.20783.

    Example: one prompt, lengths 1, 2, 5, L_max 10: w = 1/30 for all; the mass is 8/30.

    Args:
        max_length: `L_max` in tokens, at least 1.
    """
    return 1.0 / (batch.num_prompts * responses.group_size * max_length)


def vl_norm(responses: ResponseStats, batch: BatchStats, alpha: float, max_length: float) -> Tensor:
    """Weight of VL-Norm (first named Delta-L normalization).

        w_i = 1 / (P * L_max) * |o_i|^-alpha / sum_j |o_j|^-alpha

    Denominator: `sum_j` over the responses of the prompt with scope `prompt`; over all of them, with `P` = 1, with
    scope `batch`, which is what the authors' code does. `L_max` is a constant of the run. The variance of a
    response's gradient grows with its length: alpha 1 gives the smallest variance of the sum, alpha 0 is `dr_grpo`,
    and the authors take 0.75 for mathematics. The mass is not 1. Source: arXiv 2509.07558.

    Example: one prompt, lengths 1, 2, 4, alpha 1, L_max 10: w = 4/70, 2/70, 1/70; the mass is 12/70.

    Args:
        alpha: in [0, 1].
        max_length: `L_max` in tokens, at least 1.
    """
    falling = responses.length**-alpha
    return falling / (batch.num_prompts * max_length * responses.group_sum(falling))


def ba(responses: ResponseStats, batch: BatchStats) -> Tensor:
    """Weight of Balanced Aggregation, which is not `balanced`: responses of each sign are weighed by token.

        w_i = n_s / (P * G * sum_{j of sign s} |o_j|)

    Denominator: `P` prompts, `G` responses of the prompt. `n_s` of those have the sign `s` (-, 0 or +) of response i,
    and the sum is over their tokens. `sum_i w_i |o_i| = 1`, and a sign has the mass `n_s / G` of its prompt, however
    long its responses are. Source: arXiv 2605.04077, whose responses are + or -; an advantage of 0 is a third sign
    here, which leaves the masses of the others as they are.

    Example: one prompt, lengths 1, 2, 5, signs + - -: w = 1/3, 2/21, 2/21; the masses are 1/3, 4/21, 10/21.
    """
    same_sign = responses.sign_sum(torch.ones_like(responses.length))
    tokens = responses.sign_sum(responses.length)
    return same_sign / (batch.num_prompts * responses.group_size * tokens)


ETA = Parameter(name="eta", default=DEFAULT_ETA, high=1.0, meaning="0 weighs by token, 1 by response")
ALPHA = Parameter(name="alpha", high=1.0, meaning="the power of the length, 1 for the least variance")
MAX_LENGTH = Parameter(
    name="max_length", low=1.0, meaning="tokens, such as 4096 or verl's ${data.max_response_length}"
)


@hookimpl
def pv_rl_loss_modes() -> list[LossModeEntry]:
    return [
        LossModeEntry(name="grpo", weighting=grpo),
        LossModeEntry(name="dapo", weighting=dapo),
        LossModeEntry(name="balanced", weighting=balanced, parameters=(ETA,)),
        LossModeEntry(name="dr_grpo", weighting=dr_grpo, parameters=(MAX_LENGTH,)),
        LossModeEntry(name="vl_norm", weighting=vl_norm, parameters=(ALPHA, MAX_LENGTH)),
        LossModeEntry(name="ba", weighting=ba, signs=True),
        # Names that other trainers use.
        LossModeEntry(name="prompt_mean", weighting=dapo, same_as="dapo@prompt"),
        LossModeEntry(name="token_mean", weighting=dapo, same_as="dapo@batch"),
        LossModeEntry(name="seq_mean", weighting=grpo, same_as="grpo@batch"),
        LossModeEntry(name="constant", weighting=dr_grpo, parameters=(MAX_LENGTH,), same_as="dr_grpo@batch"),
        LossModeEntry(name="luspo", weighting=dr_grpo, same_as="dr_grpo:1@batch"),
    ]
