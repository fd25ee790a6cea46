"""Hooks of this package: the judge of `verdict_fluency`, commands, and a check of `pv-rl doctor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pv_rl.hookspecs import Finding, JudgeEntry, hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands", "pv_rl_doctor_checks", "pv_rl_judges"]


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
