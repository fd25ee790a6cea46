"""Our own modes, through the same door as everybody's."""

from pv_rl.hookspecs import LossModeEntry, hookimpl
from pv_rl.losses.balanced import DEFAULT_ETA, balanced
from pv_rl.losses.dapo import dapo
from pv_rl.losses.grpo import grpo

__all__ = ["pv_rl_loss_modes"]


@hookimpl
def pv_rl_loss_modes() -> list[LossModeEntry]:
    return [
        LossModeEntry(name="grpo", weighting=grpo),
        LossModeEntry(name="dapo", weighting=dapo),
        LossModeEntry(name="balanced", weighting=balanced, default_eta=DEFAULT_ETA),
    ]
