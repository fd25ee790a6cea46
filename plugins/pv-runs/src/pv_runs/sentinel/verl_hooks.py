"""Trainer hooks of the sentinel: they read the logged metrics, and take the actions between two steps."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_judge.files import load_json, write_atomically
from pv_rl.errors import DataError
from pv_runs.metric_names import ROLLED_BACK_TO
from pv_runs.sentinel.alarm_policy import AlarmPolicy, AlarmPolicyConfig, Due
from pv_runs.sentinel.watcher import Watcher

if TYPE_CHECKING:
    from pv_rl.step_state import StepState

__all__ = ["act", "check_settings", "observe", "read_settings", "restore", "save", "start"]

logger = logging.getLogger("pv_rl")

STATE_FILE = "pv_rl_sentinel.json"
"""In the folder of a checkpoint."""
CHECKPOINT = re.compile(r"global_step_(\d+)")
KEPT = ("max_actor_ckpt_to_keep", "max_critic_ckpt_to_keep")

OWN = "sentinel"
"""Name under which the state of the run keeps the guard."""
RESTORED = "sentinel_restored"
"""Name of what the guard has to know of the checkpoint that the run goes on from, until there is a guard."""


def check_settings(state: StepState) -> None:
    """Hook: refuse settings of which no sentinel can be made."""
    read_settings(state.config)


def start(state: StepState) -> None:
    """Hook: make the guard of the run."""
    made = read_settings(state.config)
    if made is None:
        return
    settings, watcher = made
    file = settings.file or Path(state.config["trainer"]["default_local_dir"], "sentinel.jsonl")
    state.own[OWN] = AlarmPolicy(settings, watcher, Path(file))
    _restore_into(state.own[OWN], state.own.pop(RESTORED, None))


def observe(state: StepState) -> None:
    """Hook: read the line that is logged, and add the sentinel's numbers to it."""
    if guard := state.own.get(OWN):
        if state.saved_step == state.step:  # verl saves a step before it validates it
            _write(state, guard.state_with(state.step, state.metrics))
        state.metrics.update(guard.observe(state.step, state.metrics))


def act(state: StepState) -> None:
    """Hook: take the action that is due.

    An alarm of a step is acted on at the end of the next one, before its weights go to the rollout: that step is
    trained and, by a rollback, thrown away.
    """
    guard: AlarmPolicy | None = state.own.get(OWN)
    if guard is not None and (due := guard.take()) is not None:
        actions = {"checkpoint": _checkpoint, "stop": _stop, "rollback": _roll_back}
        actions[due.action](state, guard, due)


def save(state: StepState) -> None:
    """Hook: keep what the guard knows with the checkpoint."""
    if guard := state.own.get(OWN):
        _write(state, guard.state())


def restore(state: StepState) -> None:
    """Hook: let the guard know what it knew then. The V1 trainer loads its checkpoint before it opens the log, and with
    it makes the guard; the legacy one after."""
    trainer = state.config.trainer
    folder = Path(trainer.default_local_dir, f"global_step_{state.step}")
    if trainer.resume_mode == "resume_path":
        folder = Path(trainer.resume_from_path)
    if guard := state.own.get(OWN):
        _restore_into(guard, _read_state(folder))
    else:
        state.own[RESTORED] = _read_state(folder)


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


def _write(state: StepState, known: Mapping[str, Any]) -> None:
    folder = Path(state.config["trainer"]["default_local_dir"], f"global_step_{state.step}")
    if folder.is_dir():
        text = json.dumps(known)
        write_atomically(folder / STATE_FILE, lambda path: path.write_text(text))


def _read_state(folder: Path) -> Mapping[str, Any] | None:
    """What the sentinel knew at a checkpoint; None where it was not there."""
    try:
        return load_json((folder / STATE_FILE).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("sentinel: %s cannot be read, it learns anew: %s", folder / STATE_FILE, error)
        return None


def _restore_into(guard: AlarmPolicy, known: Mapping[str, Any] | None) -> None:
    try:
        if known is not None:
            guard.restore(known)
    except DataError as error:
        logger.warning("%s", error)


def _checkpoint(state: StepState, guard: AlarmPolicy, due: Due) -> None:
    _save_now(state.trainer)
    _report(guard, state, "checkpoint", f"A checkpoint of step {state.step} was written. {due.reason}")


def _save_now(trainer: Any) -> None:
    """A checkpoint that makes no older one go: those from before a change are what it is about."""
    limits = {name: trainer.config.trainer.get(name) for name in KEPT if name in trainer.config.trainer}
    try:
        for name in limits:
            trainer.config.trainer[name] = None
        trainer._save_checkpoint()
    finally:
        for name, limit in limits.items():
            trainer.config.trainer[name] = limit


def _stop(state: StepState, guard: AlarmPolicy, due: Due) -> None:
    good = _last_good(Path(state.config.trainer.default_local_dir), due.since)
    before = (
        f"The newest checkpoint from before is {good[1]}." if good else "There is no checkpoint from before."
    )
    _save_now(state.trainer)
    state.halt(f"the sentinel stopped the run. {before} {due.reason}")
    _report(guard, state, "stop", f"The run ends after step {state.step}. {before} {due.reason}")


def _roll_back(state: StepState, guard: AlarmPolicy, due: Due) -> None:
    """The weights and the optimizer of a checkpoint, from here on: steps, data and logs go on as they were."""
    good = _last_good(Path(state.config.trainer.default_local_dir), due.since)
    if good is None:
        return _stop(state, guard, due)
    (step, folder), trainer = good, state.trainer
    trainer.actor_rollout_wg.load_checkpoint(local_path=str(folder / "actor"), del_local_after_load=False)
    if trainer.use_critic:
        trainer.critic_wg.load_checkpoint(local_path=str(folder / "critic"), del_local_after_load=False)
    lowered = all(trainer.actor_rollout_wg.pv_rl_scale_learning_rate(guard.config.lr_factor))
    rate = (
        f"is multiplied by {guard.config.lr_factor:g}"
        if lowered
        else "stays, since verl's engine has no torch schedule"
    )
    guard.went_back(step, state.step, _read_state(folder))
    _save_now(trainer)  # a run that is resumed goes on from here, and not from what was left behind
    _report(
        guard,
        state,
        "rollback",
        f"Step {state.step}: the policy is that of the checkpoint of step {step} again, and the learning "
        f"rate {rate}. {due.reason}",
    )
    state.metrics[ROLLED_BACK_TO] = float(step)


def _last_good(checkpoints: Path, since: int) -> tuple[int, Path] | None:
    found = [
        (int(match[1]), folder)
        for folder in checkpoints.glob("global_step_*")
        if (match := CHECKPOINT.fullmatch(folder.name)) and (folder / STATE_FILE).is_file()  # written last
    ]
    return max((one for one in found if one[0] < since), default=None)


def _report(guard: AlarmPolicy, state: StepState, action: str, message: str) -> None:
    logger.warning("sentinel: %s", message)
    guard.tell({"event": action, "step": state.step, "message": message})
