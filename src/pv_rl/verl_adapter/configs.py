"""Patches of verl's config classes: they accept our modes, and refuse at start what would fail later."""

from __future__ import annotations

import functools
from types import ModuleType

from pv_rl.errors import LossModeError, VerlError
from pv_rl.losses import resolve_mode
from pv_rl.losses.mode import find_mode
from pv_rl.plugins import VERL_MODES
from pv_rl.verl_adapter import contract

__all__ = ["patch_actor_config", "patch_critic_config"]

OWN_WAY = frozenset({"sapo", "geo_mean"})
"""The policy losses of verl 0.9 that aggregate without regard to loss_agg_mode (core_algos.py)."""


def patch_actor_config(module: ModuleType) -> None:
    """Wrap `ActorConfig.__post_init__` (verl/workers/config/actor.py:195).

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
                mode = resolve_mode(spec)
            except LossModeError as ours:
                raise LossModeError(f"{ours} verl's own modes also work; verl says: {error}.") from error
        contract.check(f"loss_agg_mode={mode.spec}", "weightings")
        if self.loss_scale_factor is not None:
            raise VerlError(
                f"actor_rollout_ref.actor.loss_scale_factor={self.loss_scale_factor} has no effect with loss_agg_mode="
                f"{mode.spec}: verl uses it for seq-mean-token-sum-norm only. Remove it, or use dr_grpo:MAX_LENGTH"
            )
        loss_mode = self.policy_loss.get("loss_mode")
        if loss_mode in OWN_WAY:
            raise VerlError(
                f"loss_agg_mode={mode.spec}: verl's policy loss {loss_mode} aggregates in a way of its own, so that "
                "loss_agg_mode has no effect on it; use another actor.policy_loss.loss_mode, for example gspo"
            )
        # verl's other checks run with a name that it knows. The config freezes its fields: set it below that.
        self.__dict__["loss_agg_mode"] = "token-mean"
        try:
            original(self)
        finally:
            self.__dict__["loss_agg_mode"] = spec

    module.ActorConfig.__post_init__ = __post_init__


def patch_critic_config(module: ModuleType) -> None:
    """Wrap `CriticConfig.__post_init__` (verl/workers/config/critic.py), which does not look at the mode.

    Symptom without it: a critic's mode that nobody knows stops the run after the first rollouts, not at start.
    """
    original = module.CriticConfig.__post_init__

    @functools.wraps(original)
    def __post_init__(self) -> None:
        original(self)
        spec = self.loss_agg_mode
        if mode := find_mode(spec):
            contract.check(f"loss_agg_mode={mode.spec}", "weightings")
        elif str(spec) not in VERL_MODES and not _is_aggregated(spec):
            try:
                resolve_mode(spec)
            except LossModeError as error:
                raise LossModeError(f"critic.loss_agg_mode: {error} verl's own modes also work.") from error

    module.CriticConfig.__post_init__ = __post_init__


def _is_aggregated(spec: str) -> bool:
    """Whether verl's `agg_loss`, which another package may have patched too, takes a mode that is not ours."""
    import torch
    from verl.trainer.ppo.core_algos import agg_loss

    one = torch.ones(1, 1)
    try:
        agg_loss(one, one, spec, batch_num_tokens=1, global_batch_size=1)
    except ValueError:
        return False
    return True
