"""Registration of the patches, each to run right after verl imports its module."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from types import ModuleType

from pv_rl.verl_adapter import contract

__all__ = ["install"]

logger = logging.getLogger("pv_rl")

_SENTINEL = "_pv_rl_patched"


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
    patches = _patches()
    if problem:  # an unknown verl runs as it is, but refuses our modes by name
        patches = {name: patch for name, patch in patches.items() if name.startswith("verl.workers.config.")}
    for name, patch in patches.items():
        register_post_import_hook(_guarded(patch), name)


def _patches() -> dict[str, Callable[[ModuleType], None]]:
    # Imported when the hook runs: they import torch, and `import verl` should stay as light as it is.
    def lazily(*functions: tuple[str, str]) -> Callable[[ModuleType], None]:
        def patch(module: ModuleType) -> None:
            for ours, function in functions:
                getattr(
                    importlib.import_module(ours if "." in ours else f"pv_rl.verl_adapter.{ours}"), function
                )(module)

        return patch

    return {
        "verl.utils.config": lazily(("start", "patch_validate_config")),
        "verl.utils.tracking": lazily(("pv_runs.sentinel.verl_hooks", "patch_tracking")),
        "verl.trainer.ppo.core_algos": lazily(("aggregation", "patch_agg_loss")),
        "verl.workers.utils.losses": lazily(("loss_functions", "patch_loss_functions")),
        "verl.trainer.distillation.losses": lazily(("loss_functions", "patch_distillation_loss")),
        "verl.workers.engine_workers": lazily(
            ("batch_weights", "patch_training_worker"), ("pv_runs.sentinel.verl_hooks", "patch_workers")
        ),
        "verl.workers.config.actor": lazily(("configs", "patch_actor_config")),
        "verl.workers.config.critic": lazily(("configs", "patch_critic_config")),
        "verl.experimental.reward_loop.reward_loop": lazily(("reward_workers", "patch_reward_loop")),
        "verl.trainer.ppo.v1.replay_buffer": lazily(("judge_run", "patch_replay_buffer")),
        "verl.experimental.separation.ray_trainer": lazily(("judge_run", "patch_other_fit")),
        "verl.experimental.one_step_off_policy.ray_trainer": lazily(("judge_run", "patch_other_fit")),
        # Outermost last: rows abstain before weights are computed, and a step that was halted is a whole one.
        "verl.trainer.ppo.v1.trainer_base": lazily(
            ("row_weights", "patch_v1_trainer"),
            ("abstention", "patch_v1_trainer"),
            ("pv_runs.sentinel.verl_hooks", "patch_v1_trainer"),
            ("checkpoints", "patch_v1_trainer"),
            ("judge_run", "patch_v1_trainer"),
            ("held_out_metrics", "patch_v1_trainer"),
        ),
        "verl.trainer.ppo.ray_trainer": lazily(
            ("row_weights", "patch_legacy_trainer"),
            ("abstention", "patch_legacy_trainer"),
            ("pv_runs.sentinel.verl_hooks", "patch_legacy_trainer"),
            ("checkpoints", "patch_legacy_trainer"),
            ("judge_run", "patch_legacy_trainer"),
            ("held_out_metrics", "patch_legacy_trainer"),
        ),
    }


def _guarded(patch: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """Patch once; where that cannot be done, leave verl as it is and keep the problem."""

    def hook(module: ModuleType) -> None:
        if getattr(module, _SENTINEL, False):
            return
        setattr(module, _SENTINEL, True)
        found = contract.problems(module)
        if not found:
            try:
                patch(module)
            except Exception as error:  # noqa: BLE001 - a stock run goes on, whatever is wrong with us
                found = [f"{module.__name__} could not be patched: {error!r}"]
        for problem in found:
            contract.record(problem, module=module.__name__)
            logger.error("pv-rl leaves verl as it is: %s", problem)

    return hook
