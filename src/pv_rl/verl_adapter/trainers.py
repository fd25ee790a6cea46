"""Patches of verl's trainers. Each function of verl is wrapped once and calls the hooks of its points.

| point | V1 `PPOTrainer` (trainer/ppo/v1/trainer_base.py) | legacy `RayPPOTrainer` (trainer/ppo/ray_trainer.py) |
|---|---|---|
| `checkpoint_loaded` | `_load_checkpoint` :850 | `_load_checkpoint` :1052 |
| `before_advantage` | `_compute_advantage` :1743 | `compute_advantage` :187 |
| `after_advantage` | likewise | `_update_critic` :1378 or `_update_actor` :1327, the first of a step |
| `before_update` | `_update_critic` :1804, `_update_actor` :1827 | `_update_critic`, `_update_actor` |
| `step_end` | `step` :533 | `_update_actor` |
| `checkpoint_saved` | `_save_checkpoint` :948 | `_save_checkpoint` :983 |
| `validated` | `_val_metrics_update` :1342 (`_maybe_log_val_generations` :1205) | likewise :721 (:548) |
| `fit_end` | `fit` :412 | `fit` :1405, and those of trainers beneath it |

Symptom without them: no weights at the worker, and `VerlError` there; rows without a reward are trained on as wrong;
neither a hook nor a person (`pv_rl.stop_file`) can end a run after a checkpoint. They can go when verl calls functions
of a plugin there; those of the legacy trainer with that trainer.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import open_dict

from pv_rl.errors import RunHalted
from pv_rl.step_state import StepState, Validation
from pv_rl.stop_file import asked_to_stop, forget
from pv_rl.trainer_hooks import names_our_reward, run_hooks, state_of
from pv_rl.verl_adapter.install import replace_everywhere
from pv_rl.verl_adapter.rows import LegacyRows, TransferQueueRows

__all__ = ["patch_legacy_trainer", "patch_other_fit", "patch_v1_trainer", "patch_validation"]


def patch_v1_trainer(module: ModuleType) -> None:
    """Wrap the functions of `PPOTrainer`."""
    trainer = module.PPOTrainer
    compute_step, compute_advantage = trainer.step, trainer._compute_advantage

    @functools.wraps(compute_step)
    def step(self, metrics, *arguments, **options):
        state_of(self).waiting_since = time.time()
        batch = compute_step(self, metrics, *arguments, **options)
        state = state_of(self)
        state.metrics = metrics
        run_hooks("step_end", state)
        state.rows = None
        folder = Path(self.config.trainer.default_local_dir)
        if state.halt_reason or asked_to_stop(folder):
            _save_and_halt(state)
            forget(folder)  # the next run here was not asked
            self.total_training_steps = self.global_steps  # the loop logs this step and ends
        return batch

    @functools.wraps(compute_advantage)
    def _compute_advantage(self, batch, metrics, *arguments, **options):
        state, rows = state_of(self), TransferQueueRows(module, batch)
        state.begin(rows, metrics)
        run_hooks("before_advantage", state)
        nothing_counts = names_our_reward(self.config) and rows.nothing_counts
        with _without_correction(self.config) if nothing_counts else nullcontext():
            batch = compute_advantage(self, batch, metrics, *arguments, **options)
        rows.weighed(batch)
        run_hooks("after_advantage", state)
        return rows.batch

    def wrapped_update(part: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update(self, batch, metrics, *arguments, **options):
            state = state_of(self)
            state.part, state.metrics, state.skip_update = part, metrics, False
            run_hooks("before_update", state)
            batch = batch if state.skip_update else original(self, batch, metrics, *arguments, **options)
            state.waiting_since = time.time()  # for the rows of verl's next round of this step
            return batch

        return update

    trainer.step, trainer._compute_advantage = step, _compute_advantage
    trainer._update_critic = wrapped_update("critic", trainer._update_critic)
    trainer._update_actor = wrapped_update("actor", trainer._update_actor)
    _patch_common(trainer)


def patch_legacy_trainer(module: ModuleType) -> None:
    """Wrap `compute_advantage` and the functions of `RayPPOTrainer`, for `trainer.use_v1=False`.

    A step is one DataProto. The loop of the trainer is one function, so that a step that halts is saved and not logged.
    """
    trainer, original = module.RayPPOTrainer, module.compute_advantage

    @functools.wraps(original)
    def compute_advantage(data, *arguments, **options):
        rows = LegacyRows(data)
        if not rows.infos:  # also beneath the V1 trainer, whose point was before
            return original(data, *arguments, **options)
        run_hooks("before_advantage", StepState(rows=rows))  # not the run's state: no trainer is given here
        data = original(data, *arguments, **options)
        rows.restore_uids()
        return data

    def wrapped_update(part: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update(self, batch, *arguments, **options):
            state = state_of(self)
            rows = state.rows
            if not isinstance(rows, LegacyRows) or rows.data is not batch:
                rows = LegacyRows(batch)
                state.begin(rows, {})
            state.part, state.skip_update = part, False
            if not rows.has_advantages:
                rows.has_advantages = True
                run_hooks("after_advantage", state)
            run_hooks("before_update", state)
            nothing = module.DataProto(meta_info={"metrics": {}}) if state.skip_update else None
            output = original(self, batch, *arguments, **options) if nothing is None else nothing
            if part == "actor":
                run_hooks("step_end", state)
                output.meta_info["metrics"].update(state.metrics)
                state.rows = None
                if state.halt_reason:
                    _save_and_halt(state)
                    raise RunHalted(state.halted)
            return output

        return update

    replace_everywhere(module, "compute_advantage", compute_advantage)
    trainer._update_critic = wrapped_update("critic", trainer._update_critic)
    trainer._update_actor = wrapped_update("actor", trainer._update_actor)
    _patch_common(trainer)


def patch_other_fit(module: ModuleType) -> None:
    """Wrap `fit` of the trainers that have one of their own beneath the legacy trainer: one-step-off and its base
    (verl/experimental/one_step_off_policy/ray_trainer.py:265, verl/experimental/separation/ray_trainer.py:278).
    """
    for trainer in vars(module).values():
        if isinstance(trainer, type) and trainer.__module__ == module.__name__ and "fit" in vars(trainer):
            trainer.fit = _ending(trainer.fit)  # pyright: ignore[reportAttributeAccessIssue]


def _patch_common(trainer: Any) -> None:
    """The functions that both trainers have.

    A step is saved once, whoever asks for it. Symptom without it: a run that is asked to stop at a step that verl saves
    too saves it twice, verl's bookkeeping (`register_checkpoint` in verl/utils/checkpoint/checkpoint_manager.py:181)
    counts two, and with `max_actor_ckpt_to_keep=1` removes the one that was just written.
    """
    save, load = trainer._save_checkpoint, trainer._load_checkpoint

    @functools.wraps(save)
    def _save_checkpoint(self, *arguments, **options):
        state = state_of(self)
        if state.saved_step == self.global_steps:
            return
        save(self, *arguments, **options)
        state.saved_step = self.global_steps
        run_hooks("checkpoint_saved", state)

    @functools.wraps(load)
    def _load_checkpoint(self, *arguments, **options):
        result = load(self, *arguments, **options)
        state = state_of(self)
        if self.global_steps:
            run_hooks("checkpoint_loaded", state)
        return result

    trainer._save_checkpoint, trainer._load_checkpoint = _save_checkpoint, _load_checkpoint
    trainer.fit = _ending(trainer.fit)


def patch_validation(module: ModuleType) -> None:
    """Wrap the two functions that a validation of either trainer calls with its rows."""
    trainer: Any = vars(module).get("PPOTrainer") or module.RayPPOTrainer
    show, validate = trainer._maybe_log_val_generations, trainer._val_metrics_update

    @functools.wraps(show)
    def _maybe_log_val_generations(self, inputs, outputs, *arguments, **options):
        lengths = [len(output) for output in outputs]  # verl calls it before the next one, rows in its order
        state_of(self).validation = Validation([], {}, lengths, inputs)
        return show(self, inputs, outputs, *arguments, **options)

    @functools.wraps(validate)
    def _val_metrics_update(self, data_sources, sample_uids, reward_extra_infos_dict, *arguments, **options):
        metrics = validate(self, data_sources, sample_uids, reward_extra_infos_dict, *arguments, **options)
        state = state_of(self)
        shown = state.validation or Validation([], {}, None, [])
        state.validation = shown._replace(data_sources=list(data_sources), infos=reward_extra_infos_dict)
        state.metrics = metrics
        run_hooks("validated", state)
        state.validation = None
        return metrics

    trainer._maybe_log_val_generations = _maybe_log_val_generations
    trainer._val_metrics_update = _val_metrics_update


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    """`fit`, after which the hooks of `fit_end` run; where one has stopped the run, the exit says so."""

    @contextmanager
    def end(trainer: Any) -> Iterator[None]:
        try:
            yield
        finally:
            state_of(trainer).ended = True
            run_hooks("fit_end", state_of(trainer))
        if halted := state_of(trainer).halted:
            raise RunHalted(halted)

    @functools.wraps(original)
    def fit(self, *arguments, **options):
        with end(self):
            return original(self, *arguments, **options)

    @functools.wraps(original)
    async def fit_async(self, *arguments, **options):
        with end(self):
            return await original(self, *arguments, **options)

    return fit_async if inspect.iscoroutinefunction(original) else fit


def _save_and_halt(state: StepState) -> None:
    state.trainer._save_checkpoint()
    if reason := state.halt_reason:
        state.halted = f"{reason}. A checkpoint of step {state.step} was written; resume from there"


@contextmanager
def _without_correction(config: Any) -> Iterator[None]:
    """verl's rollout correction refuses a step where no token counts (verl/trainer/ppo/rollout_corr_helper.py:837)."""
    before = config.algorithm.get("rollout_correction")
    with open_dict(config):
        config.algorithm.rollout_correction = None
    try:
        yield
    finally:
        config.algorithm.rollout_correction = before
