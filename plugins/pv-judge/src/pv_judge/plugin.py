"""Hooks of this package: the judge of `verdict_fluency`, commands, a check of `pv-rl doctor`, and trainer hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pv_rl.hookspecs import Finding, JudgeEntry, TrainerHook, hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands", "pv_rl_doctor_checks", "pv_rl_judges", "pv_rl_trainer_hooks"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_judge.commands import app

    return app


@hookimpl
def pv_rl_judges() -> list[JudgeEntry]:
    from pv_judge.veto import FluencyJudge

    return [JudgeEntry(name="fluency", build=FluencyJudge.build)]


@hookimpl
def pv_rl_doctor_checks() -> Mapping[str, Callable[[], Finding]]:
    from pv_judge.endpoint_check import check_endpoint

    return {"judge": check_endpoint}


@hookimpl
def pv_rl_trainer_hooks() -> list[TrainerHook]:
    return [
        TrainerHook(
            name="judge-run-folder",
            point="rewards_start",
            run="pv_judge.verl_hooks:name_run_folder",
            condition="reward",
            needs=("config",),
        ),
        TrainerHook(
            name="judge-metrics",
            point="after_advantage",
            run="pv_judge.verl_hooks:add_metrics",
            condition="reward",
            needs=("rows", "waited"),
            gives=("metrics",),
        ),
        TrainerHook(
            name="judge-halt",
            point="step_end",
            run="pv_judge.verl_hooks:halt_run",
            condition="reward",
            gives=("halt_reason",),
        ),
        TrainerHook(name="judge-close", point="fit_end", run="pv_judge.verl_hooks:close", condition="reward"),
    ]
