"""Hooks of this package: commands, a check of `pv-rl doctor`, and trainer hooks for nodes, sentinel and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pv_rl.hookspecs import Finding, TrainerHook, hookimpl
from pv_runs import metric_names

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands", "pv_rl_doctor_checks", "pv_rl_trainer_hooks"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_runs.commands import app

    return app


@hookimpl
def pv_rl_doctor_checks(run: tuple[str, ...]) -> Mapping[str, Callable[[], Finding]]:
    from pv_runs.recipes.doctor import check_config

    return {"config": partial(check_config, run)}


@hookimpl
def pv_rl_trainer_hooks() -> list[TrainerHook]:
    def sentinel(name: str, point: str, **others: tuple[str, ...]) -> TrainerHook:
        run = f"pv_runs.sentinel.verl_hooks:{name}"
        title = f"sentinel-{name.replace('_', '-')}"
        return TrainerHook(name=title, point=point, run=run, condition="sentinel", **others)

    def nodes(condition: str) -> TrainerHook:
        name, run = f"nodes-{condition}", "pv_runs.nodes:check"
        return TrainerHook(name=name, point="config", run=run, condition=condition, needs=("config",))

    return [
        nodes("mode"),
        nodes("reward"),
        sentinel("check_settings", "config", needs=("config",)),
        sentinel("restore", "checkpoint_loaded", needs=("trainer",)),
        sentinel("start", "log_opened", needs=("config",), gives=("sentinel",)),
        sentinel("act", "step_end", needs=("trainer", "sentinel"), gives=("halt_reason", "metrics")),
        sentinel("save", "checkpoint_saved", needs=("trainer", "sentinel")),
        sentinel("observe", "log", needs=("metrics", "sentinel"), gives=("metrics",)),
        TrainerHook(
            name="update-size",
            point="config",
            run="pv_runs.weight_metrics:warn",
            condition="mode",
            needs=("config",),
        ),
        TrainerHook(
            name="weight-metrics",
            point="after_advantage",
            run="pv_runs.weight_metrics:add_metrics",
            condition="mode",
            needs=("advantages",),
            gives=("metrics",),
            failed=metric_names.METRICS_FAILED,
        ),
        TrainerHook(
            name="held-out-metrics",
            point="validated",
            run="pv_runs.held_out_metrics:add_metrics",
            needs=("validation",),
            gives=("metrics",),
            failed=metric_names.HELD_OUT_FAILED,
        ),
    ]
