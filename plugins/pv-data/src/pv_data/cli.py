"""The command `pv-data`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pv_data import __version__
from pv_data.audit.command import app as audit
from pv_data.duplicates.contamination_command import contamination_command
from pv_data.plugins import command_groups
from pv_data.run.commands import draw, record, run_command, status
from pv_data.shell import print_registry
from pv_data.sources.command import sources
from pv_rl.exits import version_option
from pv_rl.installing import how_to_install

__all__ = ["app"]

EVALUATION = ("eval", "report", "best-of-k", "eval-export")
"""Commands of the package pv-eval."""


class _Commands(TyperGroup):
    """Names the package of a command that is not installed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in EVALUATION and self.get_command(ctx, args[0]) is None:
            ctx.fail(
                f"`pv-data {args[0]}` comes with the package pv-eval, which is not installed. "
                + how_to_install("pv-eval")
            )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="pv-data",
    help="Question-proof-check data: build, label, audit and evaluate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=_Commands,
)
app.command("run")(run_command)
app.command("contamination")(contamination_command)
app.command()(sources)
app.add_typer(audit, name="audit")
for step in (draw, record, status):
    audit.command()(step)
for group in command_groups():
    app.registered_commands += group.registered_commands


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, version_option(__version__)] = False) -> None:
    pass


@app.command()
def methods() -> None:
    """List the generation methods that a config can name."""
    from pv_data.plugins import METHODS

    print_registry(METHODS)
