"""Table of the trainer hooks: what runs at which point of a verl run, in order.

`POINTS` lists the points in the order of a run, `HOOKS` our own hooks. Plugins add theirs by the pluggy hook
`pv_rl_trainer_hooks`, as this module does; `table` puts all of them in order. The functions of verl that reach a
point are in `pv_rl.verl_adapter.trainers`, what a hook is given in `pv_rl.step_state`.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pv_rl.errors import ConfigError, PluginError
from pv_rl.hookspecs import TrainerHook, hookimpl
from pv_rl.installing import how_to_install
from pv_rl.plugins import TRAINER_HOOKS, nearest
from pv_rl.step_state import StepState

__all__ = [
    "HOOKS",
    "PACKAGES",
    "POINTS",
    "SHARED",
    "Table",
    "check_table",
    "names_our_reward",
    "our_modes",
    "pv_rl_trainer_hooks",
    "run_hooks",
    "state_of",
    "table",
]

logger = logging.getLogger("pv_rl")

POINTS: Mapping[str, tuple[str, ...]] = {
    "config": ("config",),  # verl checks the config, before any worker is started
    "rewards_start": (),  # before the reward is built and verl starts the processes that compute it
    "checkpoint_loaded": ("trainer",),  # the run resumes from a checkpoint
    "log_opened": (),  # verl has opened its loggers
    "before_advantage": ("rows", "waited"),  # all rows of a step have their rewards
    "after_advantage": ("advantages", "metrics"),  # masks are final, nothing was sent to an update
    "before_update": ("part",),  # once for the critic, once for the actor
    "step_end": (),  # after the updates, before the rollout gets the new weights. A `halt_reason` ends the run here
    "checkpoint_saved": (),
    "validated": ("validation",),  # verl has computed the metrics of a validation
    "log": (),  # `metrics` and `step` are those of a line that verl logs
    "fit_end": (),  # the run is over, also after an error
}
"""The points of a run, in order, each with the values that are there from then on. With verl's legacy trainer
`before_advantage` may come without trainer and config, and is left out where no reward of pv-rl is."""

SHARED = frozenset({"metrics", "halt_reason"})
"""Values that several hooks may give. Who needs one runs after all of them."""

PACKAGES = {"sentinel": "pv-runs"}
"""Keys of a config that have no effect without a package of ours, for the error."""


# fmt: off
_TABLE = (
  # name             point               function                                    runs      needs     gives
  ("recipes",        "config",           "pv_rl.recipes.choices:check_recipes",      "",       "config", ""),
  ("reward",         "config",           "pv_doctor.reward:check",                   "reward", "config", ""),
  ("abstention",     "rewards_start",    "pv_doctor.reward:check_abstention",        "reward", "config", ""),
  ("abstain",        "before_advantage", "pv_rl.reward_hooks:take_out",              "reward", "rows",   "absent"),
  ("reward-metrics", "after_advantage",  "pv_rl.reward_hooks:add_metrics",           "reward", "absent", "metrics"),
  ("row-weights",    "after_advantage",  "pv_rl.verl_adapter.row_weights:add_fields", "mode",  "rows",   "weights"),
  ("skip-empty",     "before_update",    "pv_rl.reward_hooks:skip_empty_update",     "reward", "absent", "skip_update"),
  ("broken-reward",  "step_end",         "pv_rl.reward_hooks:halt_if_broken",        "reward", "rows",   "halt_reason"),
)
# fmt: on
HOOKS = [
    TrainerHook(
        name=name,
        point=point,
        run=run,
        condition=condition,
        needs=tuple(needs.split()),
        gives=tuple(gives.split()),
    )
    for name, point, run, condition, needs, gives in _TABLE
]
"""The hooks of this package; they join as those of a plugin do."""


@hookimpl
def pv_rl_trainer_hooks() -> list[TrainerHook]:
    return HOOKS


@dataclass(frozen=True)
class Table:
    """All hooks that can run, in order, and what is wrong with the others."""

    hooks: Mapping[str, tuple[TrainerHook, ...]]
    """By point."""
    problems: tuple[str, ...]
    """Each names the plugins that it is about. A hook with a problem does not run, nor do those that need it."""


@cache
def table() -> Table:
    """The table of this process."""
    failed = [f"{owner}: {why}" for owner, why in TRAINER_HOOKS.broken().items() if TRAINER_HOOKS.hook in why]
    wrong, hooks = failed + list(TRAINER_HOOKS.refused().values()), list[TrainerHook]()
    givers: dict[str, TrainerHook] = {}
    for hook in TRAINER_HOOKS.entries().values():
        taken = next((name for name in hook.gives if name in givers and name not in SHARED), None)
        if hook.point not in POINTS:
            known_points = f"points: {', '.join(POINTS)}.{nearest(str(hook.point), POINTS)}"
            wrong.append(f"{_named(hook)} runs at {hook.point!r}, which is not a point; {known_points}")
        elif taken:
            wrong.append(f"{taken!r} is given by {_named(givers[taken])} and by {_named(hook)}; rename one")
        else:
            hooks.append(hook)
            givers.update(dict.fromkeys(hook.gives, hook))
    known, ordered = set[str](), dict[str, tuple[TrainerHook, ...]]()
    for point, given in POINTS.items():
        known |= set(given)
        ordered[point] = _in_order([hook for hook in hooks if hook.point == point], known, wrong)
        known |= {name for hook in ordered[point] for name in hook.gives}
    return Table(ordered, tuple(wrong))


def _in_order(waiting: list[TrainerHook], known: set[str], wrong: list[str]) -> tuple[TrainerHook, ...]:
    """The hooks of one point: who gives a value before who needs it, else in the order in which they came."""
    done: list[TrainerHook] = []

    def is_ready(hook: TrainerHook) -> bool:
        given = known.union(*(other.gives for other in done))
        later = {name for other in waiting for name in other.gives if name not in other.needs}
        return all(name in given and (name not in later or name in hook.gives) for name in hook.needs)

    while ready := next(filter(is_ready, waiting), None):
        waiting.remove(ready)
        done.append(ready)
    for hook in waiting:
        wrong.append(
            f"{_named(hook)} needs {' and '.join(map(repr, hook.needs))} at {hook.point}, and no point or hook before "
            "it gives all of that. Install what gives it, or correct needs and gives"
        )
    return tuple(done)


def _named(hook: TrainerHook) -> str:
    return f"the trainer hook {hook.name!r} of {TRAINER_HOOKS.owner(hook.name)}"


_state = StepState()
_logged: set[str] = set()


def state_of(trainer: Any = None, *, new: bool = False) -> StepState:
    """The state of this process's run; a new one on demand, and with another trainer than before."""
    global _state
    if new or (trainer is not None and _state.trainer not in (None, trainer)):
        _state = StepState()
    if trainer is not None:
        _state.trainer, _state.config = trainer, trainer.config
        _state.step = getattr(trainer, "global_steps", 0)
    return _state


def run_hooks(point: str, state: StepState) -> None:
    """Call the hooks of a point in order. What a hook raises ends the run, unless it names a metric for that."""
    for hook in table().hooks[point]:
        if not _holds(hook.condition, state.config):
            continue
        try:
            _function(hook.run)(state)
        except Exception:
            if not hook.failed:
                raise
            state.metrics[hook.failed] = 1.0
            if hook.name not in _logged:
                _logged.add(hook.name)
                logger.exception("the trainer hook %s failed, logged once; the run goes on", hook.name)


def check_table(config: Any) -> None:
    """Refuse a config that needs hooks which cannot run; a stock one goes on without them.

    Raises:
        ConfigError: a key of the config has no effect, because the package that reads it is not there.
        PluginError: two hooks give the same value, or one needs what nobody gives. The text names their plugins.
    """
    problems = "; ".join(table().problems)
    conditions = {hook.condition for hooks in table().hooks.values() for hook in hooks}
    for key, package in PACKAGES.items():
        if config.get(key) is not None and key not in conditions:
            raise ConfigError(
                f"the config has the key {key}, which is read by the package {package}, and that is missing or broken. "
                f"{how_to_install(package)}. Or remove the key. {problems}".strip()
            )
    if problems and any(_holds(condition, config) for condition in ("mode", "reward", *PACKAGES)):
        raise PluginError(f"trainer hooks that cannot run: {problems}")
    if problems:
        logger.error("pv-rl leaves out trainer hooks that cannot run: %s", problems)


@cache
def _function(run: str) -> Callable[[StepState], None]:
    return pkgutil.resolve_name(run)


def _holds(condition: str, config: Any) -> bool:
    if condition in ("mode", "reward"):  # without a config, the rows say it
        return config is None or bool((our_modes if condition == "mode" else names_our_reward)(config))
    return not condition or (config is not None and config.get(condition) is not None)


def our_modes(config: Any) -> list[Any]:
    """The loss modes (`LossMode`) of ours that a verl config names, for the actor and for the critic."""
    from pv_rl.losses.mode import find_mode

    parts = ((config.get("actor_rollout_ref") or {}).get("actor"), config.get("critic"))
    return [mode for part in parts if part and (mode := find_mode(part.get("loss_agg_mode"))) is not None]


def names_our_reward(config: Any) -> bool:
    """Whether a verl config's reward function is one of `pv_rl.rewards`."""
    function = (config.get("reward") or {}).get("custom_reward_function") or {}
    return str(function.get("path")).startswith("pkg://pv_rl.rewards.")
