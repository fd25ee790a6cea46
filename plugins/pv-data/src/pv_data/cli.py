"""The command `pv-data`."""

from __future__ import annotations

from typing import Annotated

import typer

from pv_data import __version__

__all__ = ["app"]

app = typer.Typer(
    name="pv-data",
    help="Question-proof-check data: build, label, audit and evaluate. Its commands are still to come.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass
