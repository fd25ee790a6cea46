"""Our own modes, through the same door as everybody's."""

from pv_rl.hookspecs import LossModeEntry, Parameter, hookimpl
from pv_rl.losses.balanced import DEFAULT_ETA, balanced
from pv_rl.losses.dapo import dapo
from pv_rl.losses.dr_grpo import dr_grpo
from pv_rl.losses.grpo import grpo
from pv_rl.losses.vl_norm import vl_norm

__all__ = ["pv_rl_loss_modes"]

ETA = Parameter(name="eta", default=DEFAULT_ETA, high=1.0, meaning="0 weighs by token, 1 by response")
ALPHA = Parameter(name="alpha", high=1.0, meaning="the power of the length, 1 for the least variance")
MAX_LENGTH = Parameter(
    name="max_length",
    low=1.0,
    meaning="tokens, for example dr_grpo:${data.max_response_length} in a verl config",
)


@hookimpl
def pv_rl_loss_modes() -> list[LossModeEntry]:
    return [
        LossModeEntry(name="grpo", weighting=grpo),
        LossModeEntry(name="dapo", weighting=dapo),
        LossModeEntry(name="balanced", weighting=balanced, parameters=(ETA,)),
        LossModeEntry(name="dr_grpo", weighting=dr_grpo, parameters=(MAX_LENGTH,)),
        LossModeEntry(name="vl_norm", weighting=vl_norm, parameters=(ALPHA, MAX_LENGTH)),
    ]
