"""Sentinel hooks in verl: reads the logged metrics, and runs the actions between two steps."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pv_rl.errors import DataError
from pv_rl.files import write_atomically
from pv_runs.sentinel.alarm_policy import AlarmPolicy, AlarmPolicyConfig, Due
from pv_runs.sentinel.watcher import Watcher

__all__ = [
    "patch_legacy_trainer",
    "patch_tracking",
    "patch_v1_trainer",
    "patch_workers",
    "read_settings",
]

logger = logging.getLogger("pv_rl")

STATE_FILE = "pv_rl_sentinel.json"
"""In the folder of a checkpoint."""
CHECKPOINT = re.compile(r"global_step_(\d+)")
KEPT = ("max_actor_ckpt_to_keep", "max_critic_ckpt_to_keep")

_guard: AlarmPolicy | None = None
_restored: Mapping[str, Any] | None = None
"""State of the checkpoint that this process went on from, until the guard is made."""


def patch_tracking(module: ModuleType) -> None:
    """Wrap `Tracking.__init__` and `log` (verl/utils/tracking.py:62, :191), where every trainer logs a whole step.

    Symptom without it: nobody sees the numbers of a step. Can go when verl has callbacks for what it logs.
    """
    tracking = module.Tracking
    begin, log = tracking.__init__, tracking.log

    @functools.wraps(begin)
    def __init__(self, project_name, experiment_name, default_backend="console", config=None):
        global _guard
        begin(self, project_name, experiment_name, default_backend, config)
        _guard = self._pv_rl_guard = _make_guard(config)

    @functools.wraps(log)
    def logging_log(self, data, step, backend=None):
        guard = getattr(self, "_pv_rl_guard", None)
        if guard is not None and isinstance(data, dict):
            data = {**data, **guard.observe(step, data)}
        return log(self, data, step, backend)

    tracking.__init__, tracking.log = __init__, logging_log


def patch_v1_trainer(module: ModuleType) -> None:
    """Wrap `PPOTrainer.step`, `_save_checkpoint` and `_load_checkpoint` (verl/trainer/ppo/v1/trainer_base.py:533, :948,
    :850).

    An alarm of a step is acted on at the end of the next one, before its weights go to the rollout: that step is
    trained and, by a rollback, thrown away. Symptom without it: alarms have no consequence. Can go when verl has
    callbacks at the end of a step and of a checkpoint.
    """
    _keep_state(module.PPOTrainer)
    trainer = module.PPOTrainer
    original = trainer.step

    @functools.wraps(original)
    def step(self, metrics, timing_raw):
        batch = original(self, metrics, timing_raw)
        metrics.update(_act(self))
        return batch

    trainer.step = step


def patch_legacy_trainer(module: ModuleType) -> None:
    """Wrap `RayPPOTrainer._update_actor` (verl/trainer/ppo/ray_trainer.py:1327) and its checkpoints, likewise."""
    _keep_state(module.RayPPOTrainer)
    trainer = module.RayPPOTrainer
    original = trainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch):
        output = original(self, batch)
        _act(self)
        return output

    trainer._update_actor = _update_actor


def patch_workers(module: ModuleType) -> None:
    """Add `pv_rl_scale_learning_rate` to `ActorRolloutRefWorker` (verl/workers/engine_workers.py:452), on all ranks.

    Symptom without it: a learning rate cannot be changed after the start. Can go when verl has such a call.
    """

    @module.register(dispatch_mode=module.Dispatch.ONE_TO_ALL)
    def pv_rl_scale_learning_rate(self, factor: float) -> bool:
        engine = self.actor.engine
        if not hasattr(engine.lr_scheduler, "base_lrs"):  # Megatron's schedule is none of torch's
            return False
        for group in engine.optimizer.param_groups:
            group["lr"] *= factor
            if "initial_lr" in group:
                group["initial_lr"] *= factor
        # The schedule multiplies these, and they are saved with the checkpoint.
        engine.lr_scheduler.base_lrs = [lr * factor for lr in engine.lr_scheduler.base_lrs]
        return True

    module.ActorRolloutRefWorker.pv_rl_scale_learning_rate = pv_rl_scale_learning_rate


def read_settings(config: Mapping[str, Any]) -> tuple[AlarmPolicyConfig, Watcher] | None:
    given = config.get("sentinel")
    if given is None:
        return None
    if not isinstance(given, dict):
        from omegaconf import OmegaConf

        given = OmegaConf.to_container(given, resolve=True) if OmegaConf.is_config(given) else given
    settings = AlarmPolicyConfig.read(given)
    responses = config["data"]["train_batch_size"] * config["actor_rollout_ref"]["rollout"]["n"]
    return settings, Watcher(settings.watching(responses))


def _make_guard(config: Mapping[str, Any] | None) -> AlarmPolicy | None:
    global _restored
    made = read_settings(config) if config else None
    if made is None or config is None:
        return None
    settings, watcher = made
    file = settings.file or Path(config["trainer"]["default_local_dir"], "sentinel.jsonl")
    guard = AlarmPolicy(settings, watcher, Path(file))
    if _restored is not None:
        _restore_into(guard, _restored)
        _restored = None
    return guard


def _read_state(folder: Path) -> Mapping[str, Any] | None:
    """What the sentinel knew at a checkpoint; None where it was not there."""
    try:
        return json.loads((folder / STATE_FILE).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("sentinel: %s cannot be read, it learns anew: %s", folder / STATE_FILE, error)
        return None


def _restore(state: Mapping[str, Any] | None) -> None:
    """The V1 trainer loads its checkpoint before it makes the log, and with it the guard; the legacy one after."""
    global _restored
    if state is None:
        return
    if _guard is None:
        _restored = state
    else:
        _restore_into(_guard, state)


def _restore_into(guard: AlarmPolicy, state: Mapping[str, Any]) -> None:
    try:
        guard.restore(state)
    except DataError as error:
        logger.warning("%s", error)


def _keep_state(trainer: Any) -> None:
    save, load = trainer._save_checkpoint, trainer._load_checkpoint

    @functools.wraps(save)
    def _save_checkpoint(self, *arguments, **options):
        save(self, *arguments, **options)
        folder = Path(self.config.trainer.default_local_dir, f"global_step_{self.global_steps}")
        if _guard is not None and folder.is_dir():
            text = json.dumps(_guard.state())
            write_atomically(folder / STATE_FILE, lambda path: path.write_text(text))

    @functools.wraps(load)
    def _load_checkpoint(self, *arguments, **options):
        result = load(self, *arguments, **options)
        trainer_config = self.config.trainer
        folder = Path(trainer_config.default_local_dir, f"global_step_{self.global_steps}")
        if trainer_config.resume_mode == "resume_path":
            folder = Path(trainer_config.resume_from_path)
        if self.global_steps:
            _restore(_read_state(folder))
        return result

    trainer._save_checkpoint, trainer._load_checkpoint = _save_checkpoint, _load_checkpoint


def _act(trainer: Any) -> dict[str, float]:
    """Do what is due; the numbers to log."""
    due = _guard.take() if _guard is not None else None
    if _guard is None or due is None:
        return {}
    actions: dict[str, Callable[[Any, AlarmPolicy, Due], dict[str, float]]] = {
        "checkpoint": _checkpoint,
        "stop": _stop,
        "rollback": _roll_back,
    }
    return actions[due.action](trainer, _guard, due)


def _checkpoint(trainer: Any, guard: AlarmPolicy, due: Due) -> dict[str, float]:
    _save(trainer)
    _say(
        guard, trainer, "checkpoint", f"A checkpoint of step {trainer.global_steps} was written. {due.reason}"
    )
    return {}


def _save(trainer: Any) -> None:
    """A checkpoint that makes no older one go: those from before a change are what it is about."""
    limits = {name: trainer.config.trainer.get(name) for name in KEPT if name in trainer.config.trainer}
    try:
        for name in limits:
            trainer.config.trainer[name] = None
        trainer._save_checkpoint()
    finally:
        for name, limit in limits.items():
            trainer.config.trainer[name] = limit


def _stop(trainer: Any, guard: AlarmPolicy, due: Due) -> dict[str, float]:
    good = _last_good(Path(trainer.config.trainer.default_local_dir), due.since)
    before = (
        f"The newest checkpoint from before is {good[1]}." if good else "There is no checkpoint from before."
    )
    _save(trainer)
    trainer._pv_rl_broken = f"the sentinel stopped the run. {before} {due.reason}"  # `judge_run` ends it
    _say(guard, trainer, "stop", f"The run ends after step {trainer.global_steps}. {before} {due.reason}")
    return {}


def _roll_back(trainer: Any, guard: AlarmPolicy, due: Due) -> dict[str, float]:
    """The weights and the optimizer of a checkpoint, from here on: steps, data and logs go on as they were."""
    good = _last_good(Path(trainer.config.trainer.default_local_dir), due.since)
    if good is None:
        return _stop(trainer, guard, due)
    step, folder = good
    trainer.actor_rollout_wg.load_checkpoint(local_path=str(folder / "actor"), del_local_after_load=False)
    if trainer.use_critic:
        trainer.critic_wg.load_checkpoint(local_path=str(folder / "critic"), del_local_after_load=False)
    lowered = all(trainer.actor_rollout_wg.pv_rl_scale_learning_rate(guard.config.lr_factor))
    rate = (
        f"is multiplied by {guard.config.lr_factor:g}"
        if lowered
        else "stays, since verl's engine has no torch schedule"
    )
    guard.went_back(step, trainer.global_steps, _read_state(folder))
    _save(trainer)  # a run that is resumed goes on from here, and not from what was left behind
    _say(
        guard,
        trainer,
        "rollback",
        f"Step {trainer.global_steps}: the policy is that of the checkpoint of step {step} again, and the learning "
        f"rate {rate}. {due.reason}",
    )
    return {"pv_rl/sentinel/rolled_back_to": float(step)}


def _last_good(checkpoints: Path, since: int) -> tuple[int, Path] | None:
    found = [
        (int(match[1]), folder)
        for folder in checkpoints.glob("global_step_*")
        if (match := CHECKPOINT.fullmatch(folder.name)) and (folder / STATE_FILE).is_file()  # written last
    ]
    return max((one for one in found if one[0] < since), default=None)


def _say(guard: AlarmPolicy, trainer: Any, action: str, message: str) -> None:
    logger.warning("sentinel: %s", message)
    guard.tell({"event": action, "step": trainer.global_steps, "message": message})
