"""One run: its state, its seed, what it was started with, its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from pv_judge.pages.text import plain
from pv_runs.hydra_record import look_up, read_config, read_overrides
from pv_runs.in_force import Phases, describe, in_force, is_setting
from pv_runs.measures import KEYS
from pv_runs.metric_names import ROLLED_BACK_TO
from pv_runs.metrics_log import Log, read_log
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import read_about

__all__ = ["Run", "State", "read_run"]

State = Literal["finished", "running", "stopped", "failed", "unknown"]
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was read of a run's folder."""

    name: str
    """Its folder, from the folder that was given; the folder's own name if it is that."""
    state: State
    """As run.json says; `unknown` without one. A run that was killed hard still says `running`."""
    error: str | None
    versions: Mapping[str, str]
    """By package."""
    seed: str | None
    overrides: Mapping[str, str]
    """By key."""
    config: Mapping[str, str]
    """By dotted key, nothing resolved."""
    log: Log
    in_force: Mapping[str, Phases] = field(default_factory=dict)
    """What changed between its attempts, by key; overrides and config have it as `0.6 then 0.3 from step 41`."""
    rollbacks: Mapping[int, float] = field(default_factory=dict)
    """By step at which the sentinel rolled the run back, the step of the checkpoint."""

    @property
    def mode(self) -> str | None:
        """Its loss_agg_mode."""
        return look_up(self.config, "actor_rollout_ref.actor.loss_agg_mode")


def read_run(path: Path, name: str, wanted: Callable[[str], bool] = KEYS.__contains__) -> Run:
    """Read a run's folder.

    Args:
        path: of the folder.
        name: to show it by.
        wanted: whether to keep a metric of verl's, by its key.

    Raises:
        DataError: a file in it is not what it should be.
    """
    about = read_about(RunFolder(path).record)
    error, versions = about.get("error"), about.get("versions")
    config, overrides = read_config(path), read_overrides(path)
    log = read_log(path, lambda key: key == ROLLED_BACK_TO or wanted(key))
    changes = in_force(about, log.starts, config)
    for key, phases in changes.items():
        if key in config:
            config[key] = describe(phases)
        if key in overrides or is_setting(key, config):
            overrides[key] = describe(phases)
    seed = look_up(config, "seed") or overrides.get("seed")
    return Run(
        name=plain(name),
        state=_state(about.get("state")),
        error=plain(error) if error else None,
        versions=(
            {plain(package, 40): plain(version, 40) for package, version in list(versions.items())[:20]}
            if isinstance(versions, dict)
            else {}
        ),
        seed=None if seed is None else plain(seed, 40),
        overrides=overrides,
        config=config,
        log=log,
        in_force=changes,
        rollbacks=log.series.get(ROLLED_BACK_TO, {}),
    )


def _state(given: Any) -> State:
    for known in STATES:
        if known == given:
            return known
    return "unknown"
