"""A step is saved once, whoever asks for it."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

__all__ = ["patch_legacy_trainer", "patch_v1_trainer"]


def patch_v1_trainer(module: ModuleType) -> None:
    """Wrap `PPOTrainer._save_checkpoint` (verl/trainer/ppo/v1/trainer_base.py:948).

    Symptom without it: a run that is asked to stop at a step that verl saves too saves it twice, verl's bookkeeping
    (`register_checkpoint` in verl/utils/checkpoint/checkpoint_manager.py:181) counts two, and with
    `max_actor_ckpt_to_keep=1` removes the one that was just written. Can go when verl does not count a path twice.
    """
    _save_once(module.PPOTrainer)


def patch_legacy_trainer(module: ModuleType) -> None:
    """Wrap `RayPPOTrainer._save_checkpoint` (verl/trainer/ppo/ray_trainer.py:983), likewise."""
    _save_once(module.RayPPOTrainer)


def _save_once(trainer: Any) -> None:
    original = trainer._save_checkpoint

    @functools.wraps(original)
    def _save_checkpoint(self, *arguments, **options):
        if getattr(self, "_pv_rl_saved", None) == self.global_steps:
            return None
        result = original(self, *arguments, **options)
        self._pv_rl_saved = self.global_steps
        return result

    trainer._save_checkpoint = _save_checkpoint
