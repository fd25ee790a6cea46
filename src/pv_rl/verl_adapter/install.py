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

PATCHES = {
    ("verl.utils.config", ""): "start:patch_validate_config",
    ("verl.utils.tracking", "log"): "start:patch_tracking",
    ("verl.trainer.ppo.core_algos", "weightings"): "aggregation:patch_agg_loss",
    ("verl.workers.utils.losses", "weightings"): "loss_functions:patch_loss_functions",
    ("verl.trainer.distillation.losses", "distillation"): "loss_functions:patch_distillation_loss",
    ("verl.workers.engine_workers", "weightings"): "batch_weights:patch_workers",
    ("verl.workers.config.actor", "weightings"): "configs:patch_actor_config",
    ("verl.workers.config.critic", "weightings"): "configs:patch_critic_config",
    ("verl.experimental.reward_loop.reward_loop", "rewards"): "reward_workers:patch_reward_loop",
    ("verl.trainer.ppo.v1.trainer_base", "V1 trainer"): "trainers:patch_v1_trainer",
    ("verl.trainer.ppo.v1.trainer_base", "validation"): "trainers:patch_validation",
    ("verl.trainer.ppo.ray_trainer", "legacy trainer"): "trainers:patch_legacy_trainer",
    ("verl.trainer.ppo.ray_trainer", "validation"): "trainers:patch_validation",
    ("verl.experimental.separation.ray_trainer", "other trainers"): "trainers:patch_other_fit",
    ("verl.experimental.one_step_off_policy.ray_trainer", "other trainers"): "trainers:patch_other_fit",
}
"""Module of verl and part of `seams.csv` to the function of this package that patches it, once. It is imported when the
hook runs: most import torch, and `import verl` should stay as light as it is."""


def install() -> None:
    """Serve the installed verl in this process. Idempotent; imports nothing of verl."""
    try:
        from wrapt import register_post_import_hook
    except ImportError as error:  # comes with verl (ray's smart_open), so it takes a broken environment
        contract.record(f"wrapt cannot be imported: {error}; pip install wrapt")
        logger.error("pv-rl cannot serve verl: wrapt cannot be imported; pip install wrapt")
        return
    for (name, part), patch in PATCHES.items():
        register_post_import_hook(_guarded(part, f"{__package__}.{patch}"), name)


def _guarded(part: str, patch: str) -> Callable[[ModuleType], None]:
    """Patch once; where that cannot be done, leave verl as it is and keep the problem."""

    def hook(module: ModuleType) -> None:
        patched = vars(module).setdefault(_SENTINEL, set())
        if part in patched:
            return
        patched.add(part)
        try:
            if not (found := contract.problems(module, part)):
                pkgutil.resolve_name(patch)(module)
        except Exception as error:  # noqa: BLE001 - a stock run goes on, whatever is wrong with us
            found = [f"{module.__name__} could not be patched: {error!r}"]
        for problem in found:
            contract.record(problem, part)

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
