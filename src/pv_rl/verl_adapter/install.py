"""Registration of the patches, each to run right after verl imports its module; replacement of a function of verl."""

from __future__ import annotations

import logging
import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pv_rl.verl_adapter import contract

__all__ = ["PATCHES", "install", "replace_everywhere"]

logger = logging.getLogger("pv_rl")

_SENTINEL = "_pv_rl_patched"

_HERE = "pv_rl.verl_adapter"
PATCHES = {
    "verl.utils.config": f"{_HERE}.start:patch_validate_config",
    "verl.utils.tracking": f"{_HERE}.start:patch_tracking",
    "verl.trainer.ppo.core_algos": f"{_HERE}.aggregation:patch_agg_loss",
    "verl.workers.utils.losses": f"{_HERE}.loss_functions:patch_loss_functions",
    "verl.trainer.distillation.losses": f"{_HERE}.loss_functions:patch_distillation_loss",
    "verl.workers.engine_workers": f"{_HERE}.batch_weights:patch_workers",
    "verl.workers.config.actor": f"{_HERE}.configs:patch_actor_config",
    "verl.workers.config.critic": f"{_HERE}.configs:patch_critic_config",
    "verl.experimental.reward_loop.reward_loop": f"{_HERE}.reward_workers:patch_reward_loop",
    "verl.trainer.ppo.v1.trainer_base": f"{_HERE}.trainers:patch_v1_trainer",
    "verl.trainer.ppo.ray_trainer": f"{_HERE}.trainers:patch_legacy_trainer",
    "verl.experimental.separation.ray_trainer": f"{_HERE}.trainers:patch_other_fit",
    "verl.experimental.one_step_off_policy.ray_trainer": f"{_HERE}.trainers:patch_other_fit",
}
"""Module of verl to the function that patches it, once. Ours is imported when the hook runs: most import torch, and
`import verl` should stay as light as it is."""


def install() -> None:
    """Serve the installed verl in this process. Idempotent; imports nothing of verl."""
    problem = contract.version_problem()
    if problem:
        contract.record(problem)
    try:
        from wrapt import register_post_import_hook
    except ImportError as error:  # comes with verl (ray's smart_open), so it takes a broken environment
        contract.record(f"wrapt cannot be imported: {error}; pip install wrapt")
        logger.error("pv-rl cannot serve verl: wrapt cannot be imported; pip install wrapt")
        return
    for name, patch in PATCHES.items():
        # An unknown verl runs as it is, but refuses our modes by name.
        if not problem or name.startswith("verl.workers.config."):
            register_post_import_hook(_guarded(patch), name)


def _guarded(patch: str) -> Callable[[ModuleType], None]:
    """Patch once; where that cannot be done, leave verl as it is and keep the problem."""

    def hook(module: ModuleType) -> None:
        if getattr(module, _SENTINEL, False):
            return
        setattr(module, _SENTINEL, True)
        found = contract.problems(module)
        if not found:
            try:
                pkgutil.resolve_name(patch)(module)
            except Exception as error:  # noqa: BLE001 - a stock run goes on, whatever is wrong with us
                found = [f"{module.__name__} could not be patched: {error!r}"]
        for problem in found:
            contract.record(problem, module=module.__name__)
            logger.error("pv-rl leaves verl as it is: %s", problem)

    return hook


def replace_everywhere(module: ModuleType, name: str, replacement: Callable[..., Any]) -> None:
    """Set `module.name`, and every other loaded module's `name` that was the same object.

    Symptom without it: a plugin or an external module of verl that loads before us has imported the function
    by name, and those who use that reference go on without us.
    """
    original = getattr(module, name)
    for loaded in [module, *sys.modules.values()]:
        if isinstance(loaded, ModuleType):
            # Not vars(): that would load a module that is waiting to be loaded lazily.
            namespace = object.__getattribute__(loaded, "__dict__")
            if namespace.get(name) is original:
                namespace[name] = replacement
