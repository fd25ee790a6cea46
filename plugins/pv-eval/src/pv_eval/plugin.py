"""Plugin of pv-data: adds the commands of an evaluation under their older names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pv_data.hookspecs import hookimpl

if TYPE_CHECKING:
    import typer

__all__ = ["pv_data_commands"]


@hookimpl
def pv_data_commands() -> typer.Typer:
    from pv_eval.cli import data_app

    return data_app
