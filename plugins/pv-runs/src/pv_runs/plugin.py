"""What this package adds to pv-rl: the commands around a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pv_rl.hookspecs import hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_runs.commands import app

    return app
