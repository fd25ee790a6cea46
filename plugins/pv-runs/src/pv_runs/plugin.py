"""What this package adds to pv-rl: the commands around a run, and trainer hooks for sentinel and held-out metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pv_rl import metric_names
from pv_rl.hookspecs import TrainerHook, hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands", "pv_rl_trainer_hooks"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_runs.commands import app

    return app


@hookimpl
def pv_rl_trainer_hooks() -> list[TrainerHook]:
    def sentinel(name: str, point: str, **others: tuple[str, ...]) -> TrainerHook:
        run = f"pv_runs.sentinel.verl_hooks:{name}"
        title = f"sentinel-{name.replace('_', '-')}"
        return TrainerHook(name=title, point=point, run=run, condition="sentinel", **others)

    return [
        sentinel("check_settings", "config", needs=("config",)),
        sentinel("restore", "checkpoint_loaded", needs=("trainer",)),
        sentinel("start", "log_opened", needs=("config",), gives=("sentinel",)),
        sentinel("act", "step_end", needs=("trainer", "sentinel"), gives=("halt_reason", "metrics")),
        sentinel("save", "checkpoint_saved", needs=("trainer", "sentinel")),
        sentinel("observe", "log", needs=("metrics", "sentinel"), gives=("metrics",)),
        TrainerHook(
            name="held-out-metrics",
            point="validated",
            run="pv_runs.held_out_metrics:add_metrics",
            needs=("validation",),
            gives=("metrics",),
            failed=metric_names.HELD_OUT_FAILED,
        ),
    ]
