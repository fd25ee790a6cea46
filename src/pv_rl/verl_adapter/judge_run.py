"""Judge hooks in verl's trainers: exposed wait, the halt of a run, and closing the ledger."""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pv_judge.ray_service import driver_services
from pv_rl.errors import RunHalted
from pv_rl.stop_file import asked_to_stop, forget

__all__ = ["patch_legacy_trainer", "patch_other_fit", "patch_replay_buffer", "patch_v1_trainer"]

logger = logging.getLogger("pv_rl")


def patch_replay_buffer(module: ModuleType) -> None:
    """Wrap `ReplayBuffer.sample`, `ReplayBufferAsync.sample` and `wait_for_sampleable`
    (verl/trainer/ppo/v1/replay_buffer.py:422, :593, :564), where the trainer waits for a step's rows.

    Symptom without it: nobody knows whether it waits for rollouts or for rewards. Can go when verl says so.
    """
    waiting = getattr(module.ReplayBufferAsync, "wait_for_sampleable", None)
    if waiting is not None:  # verl 0.9.0 waits in `sample` alone

        @functools.wraps(waiting)
        def wait_for_sampleable(self, *arguments, **options):
            self.__dict__.setdefault("_pv_rl_wait_begin", time.time())  # before `sample`, or in it
            return waiting(self, *arguments, **options)

        module.ReplayBufferAsync.wait_for_sampleable = wait_for_sampleable
    for name in ("ReplayBuffer", "ReplayBufferAsync"):
        buffer = getattr(module, name)
        buffer.sample = _timed(buffer.sample)


def _timed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def sample(self, *arguments, **options):
        now = time.time()
        result = original(self, *arguments, **options)
        self._pv_rl_window = (min(self.__dict__.pop("_pv_rl_wait_begin", now), now), time.time())
        return result

    return sample


def patch_v1_trainer(module: ModuleType) -> None:
    """Wrap `PPOTrainer.step` and `fit` (verl/trainer/ppo/v1/trainer_base.py:533, :412).

    Symptom without it: neither the policy `halt` nor somebody who asks (`pv_rl.stop_file`) can end a run after a
    checkpoint, and the ledger stays a journal. Can go when verl lets a reward end a run.
    """
    trainer = module.PPOTrainer
    original = trainer.step

    @functools.wraps(original)
    def step(self, metrics, timing_raw):
        batch = original(self, metrics, timing_raw)
        reason = getattr(self, "_pv_rl_broken", None) or _halt_reason()
        if reason:
            self._pv_rl_halt = (
                f"{reason}. A checkpoint of step {self.global_steps} was written; resume from there"
            )
        checkpoints = Path(self.config.trainer.default_local_dir)
        if reason or asked_to_stop(checkpoints):
            self._save_checkpoint()
            forget(checkpoints)  # the next run here was not asked
            self.total_training_steps = self.global_steps  # the loop logs this step and ends
        return batch

    trainer.step = step
    trainer.fit = _closing(trainer.fit)


def patch_legacy_trainer(module: ModuleType) -> None:
    """Wrap `RayPPOTrainer._update_actor` and `fit` (verl/trainer/ppo/ray_trainer.py:1327, :1405), likewise.

    Its loop is one function, so that the step that halts is saved and not logged.
    """
    trainer = module.RayPPOTrainer
    original = trainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch):
        output = original(self, batch)
        reason = getattr(self, "_pv_rl_broken", None) or _halt_reason()
        if reason:
            self._save_checkpoint()
            raise RunHalted(
                f"{reason}. A checkpoint of step {self.global_steps} was written; resume from there"
            )
        return output

    trainer._update_actor = _update_actor
    trainer.fit = _closing(trainer.fit)


def patch_other_fit(module: ModuleType) -> None:
    """Wrap `fit` of the trainers that have one of their own beneath the legacy trainer: one-step-off and its base
    (verl/experimental/one_step_off_policy/ray_trainer.py:265, verl/experimental/separation/ray_trainer.py:278).
    """
    for trainer in vars(module).values():
        if isinstance(trainer, type) and trainer.__module__ == module.__name__ and "fit" in vars(trainer):
            trainer.fit = _closing(trainer.fit)  # pyright: ignore[reportAttributeAccessIssue]


def _closing(original: Callable[..., Any]) -> Callable[..., Any]:
    """`fit`, after which the services are closed; where the policy stopped the run, the exit says so."""

    @functools.wraps(original)
    def fit(self, *arguments, **options):
        try:
            original(self, *arguments, **options)
        finally:
            _close()
        if getattr(self, "_pv_rl_halt", None):
            raise RunHalted(self._pv_rl_halt)

    @functools.wraps(original)
    async def fit_async(self, *arguments, **options):
        try:
            await original(self, *arguments, **options)
        finally:
            _close()

    return fit_async if inspect.iscoroutinefunction(original) else fit


def _halt_reason() -> str | None:
    for service in driver_services():
        try:
            if reason := service.halt_reason():
                return reason
        except Exception as error:  # noqa: BLE001 - Ray's errors and timeouts; the watchdog restarts a silent actor
            logger.warning(
                "The judge's actor did not report whether to halt the run: %s", type(error).__name__
            )
    return None


def _close() -> None:
    for service in driver_services():
        try:
            service.close()
        except Exception:
            logger.warning(
                "the judge's ledger was not folded into Parquet; readers find its journal", exc_info=True
            )
