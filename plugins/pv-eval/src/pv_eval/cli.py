"""Command line `pv-eval`; `pv-data` has the same commands under their older names."""

from __future__ import annotations

import typer

from pv_eval.command import best_of_k, evaluate_command
from pv_eval.interop.command import export_command
from pv_eval.report_command import report

__all__ = ["app", "data_app"]

app = typer.Typer(
    name="pv-eval",
    help="Evaluate proof verifiers: ask for votes, and report tables, intervals and best-of-k.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer()
for name, older, command in (
    ("run", "eval", evaluate_command),
    ("report", "report", report),
    ("best-of-k", "best-of-k", best_of_k),
    ("export", "eval-export", export_command),
):
    app.command(name)(command)
    data_app.command(older)(command)
