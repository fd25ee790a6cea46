"""Let verl's actor config take our specs, and refuse at start what could not work later."""

from __future__ import annotations

import functools
from types import ModuleType

from pv_rl.errors import LossModeError
from pv_rl.verl_adapter import contract
from pv_rl.verl_adapter.modes import find_mode

__all__ = ["patch_actor_config"]


def patch_actor_config(module: ModuleType) -> None:
    """Wrap `ActorConfig.__post_init__` (verl/workers/config/actor.py:212).

    Symptom without it: "Invalid loss_agg_mode: balanced" from a list of names that repeats the if-chain of
    `agg_loss`. Can go when verl takes the names from a registry.
    """
    original = module.ActorConfig.__post_init__

    @functools.wraps(original)
    def __post_init__(self) -> None:
        spec = self.loss_agg_mode
        try:
            original(self)
            return
        except ValueError as error:
            if "loss_agg_mode" not in str(error):
                raise
            try:
                find_mode(spec)
            except LossModeError as ours:
                raise LossModeError(
                    f"{ours} verl's own modes may be used too; verl says: {error}."
                ) from error
        contract.require(spec)
        # verl's other checks run with a name that it knows. The config freezes its fields, so set them below that.
        self.__dict__["loss_agg_mode"] = "token-mean"
        try:
            original(self)
        finally:
            self.__dict__["loss_agg_mode"] = spec

    module.ActorConfig.__post_init__ = __post_init__
