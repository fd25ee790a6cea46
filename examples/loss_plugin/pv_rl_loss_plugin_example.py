"""The loss mode `power`: a response's mass is a power of its length, between `grpo` (0) and `dapo` (1)."""

from __future__ import annotations

from torch import Tensor

from pv_rl.hookspecs import LossModeEntry, Parameter, hookimpl
from pv_rl.losses import BatchStats, ResponseStats


def power(responses: ResponseStats, batch: BatchStats, power: float) -> Tensor:
    """Weight that makes a response's mass proportional to `|o_i|^power`.

        w_i = 1 / P * |o_i|^(power - 1) / sum_j |o_j|^power

    Denominator: `P` prompts, `sum_j` over the responses of the prompt, so that `sum_i w_i |o_i| = 1`. Source: none,
    it is made up for this example.

    Example: one prompt, lengths 1, 4, power 0.5: masses 1/3 and 2/3, w = 1/3, 1/6.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.
        power: in [0, 1].

    Returns:
        (B,) weight of each token of response i.
    """
    mass = responses.length**power
    return mass / (batch.num_prompts * responses.group_sum(mass) * responses.length)


@hookimpl
def pv_rl_loss_modes() -> list[LossModeEntry]:
    exponent = Parameter(name="power", default=0.5, high=1.0, meaning="0 weighs by response, 1 by token")
    return [LossModeEntry(name="power", weighting=power, parameters=(exponent,))]
