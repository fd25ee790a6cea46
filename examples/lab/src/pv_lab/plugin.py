"""Plugin of pv-rl: the commands of the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pv_rl.hookspecs import hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_rl_commands"]


@hookimpl
def pv_rl_commands() -> typer.Typer:
    from pv_lab.commands import app

    return app
