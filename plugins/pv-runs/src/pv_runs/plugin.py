"""Hooks of this package: commands around a run, and a check of `pv-rl doctor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pv_rl.hookspecs import Finding, hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands", "pv_rl_doctor_checks"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_runs.commands import app

    return app


@hookimpl
def pv_rl_doctor_checks(run: tuple[str, ...]) -> Mapping[str, Callable[[], Finding]]:
    from pv_runs.recipes.doctor import check_config

    return {"config": partial(check_config, run)}
