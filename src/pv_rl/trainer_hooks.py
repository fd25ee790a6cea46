"""Table of the trainer hooks: what runs at which point of a verl run, in order.

`POINTS` lists the points in the order of a run, `HOOKS` our own hooks. Plugins add theirs by the pluggy hook
`pv_rl_trainer_hooks`, as this module does; `table` puts all of them in order. The functions of verl that reach a
point are in `pv_rl.verl_adapter.trainers`, what a hook is given in
`pv_rl.step_state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pv_rl.hookspecs import TrainerHook, hookimpl
from pv_rl.plugins import TRAINER_HOOKS, entries, nearest, owner_of, refused

__all__ = ["HOOKS", "PACKAGES", "POINTS", "SHARED", "Table", "pv_rl_trainer_hooks", "table"]

POINTS: Mapping[str, tuple[str, ...]] = {
    "config": ("config",),  # verl checks the config, before any worker is started
    "rewards_start": (),  # before the reward is built and verl starts the processes that compute it
    "checkpoint_loaded": ("trainer",),  # the run goes on from a checkpoint
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

HOOKS = [
    TrainerHook(name="config-groups", point="config", run="pv_rl.verl_adapter.start:check_groups"),
    TrainerHook(name="config-choices", point="config", run="pv_rl.verl_adapter.start:check_choices"),
    TrainerHook(
        name="abstain",
        point="before_advantage",
        run="pv_rl.verl_adapter.abstention:take_out",
        condition="reward",
        needs=("rows",),
        gives=("absent",),
    ),
    TrainerHook(
        name="reward-metrics",
        point="after_advantage",
        run="pv_rl.step_metrics:add_reward_metrics",
        condition="reward",
        needs=("absent",),
        gives=("metrics",),
    ),
    TrainerHook(
        name="weight-metrics",
        point="after_advantage",
        run="pv_rl.step_metrics:add_weight_metrics",
        condition="mode",
        needs=("rows", "advantages"),
        gives=("metrics",),
        failed="pv_rl/metrics_failed",
    ),
    TrainerHook(
        name="row-weights",
        point="after_advantage",
        run="pv_rl.verl_adapter.row_weights:add_fields",
        condition="mode",
        needs=("rows",),
        gives=("row_weights",),
    ),
    TrainerHook(
        name="skip-empty-update",
        point="before_update",
        run="pv_rl.verl_adapter.abstention:skip_empty_update",
        condition="reward",
        needs=("absent", "part"),
        gives=("skip_update", "metrics"),
    ),
    TrainerHook(
        name="reward-broken",
        point="step_end",
        run="pv_rl.verl_adapter.abstention:halt_if_broken",
        condition="reward",
        needs=("rows",),
        gives=("halt_reason",),
    ),
]


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
    wrong, hooks = list(refused(TRAINER_HOOKS).values()), list[TrainerHook]()
    givers: dict[str, TrainerHook] = {}
    for hook in entries(TRAINER_HOOKS).values():
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
    return f"the trainer hook {hook.name!r} of {owner_of(TRAINER_HOOKS, hook.name)}"
