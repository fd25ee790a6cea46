"""Command line `pv-rl`: `doctor`, and the commands that installed plugins add through the hook `pv_rl_commands`."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pv_rl import __version__
from pv_rl.exits import errors_to_exit, version_option
from pv_rl.installing import how_to_install
from pv_rl.plugins import hook_results

__all__ = ["app"]

PACKAGES = {
    "pv-judge": ("rejudge", "score"),
    "pv-runs": ("plan", "report", "train", "watch", "weights"),
    "pv-lab": ("quickstart",),
}
"""The commands of other packages of this repository."""


class _Commands(TyperGroup):
    """Names the package of a command that is not installed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for package, commands in PACKAGES.items():
            if args and args[0] in commands and self.get_command(ctx, args[0]) is None:
                ctx.fail(
                    f"`pv-rl {args[0]}` comes with the package {package}, which is not installed. "
                    + how_to_install(package)
                )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="pv-rl",
    help="Balanced token weighting and proof-verifier rewards for verl.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=_Commands,
)


def _add(group: typer.Typer) -> None:
    """Add a plugin's commands and groups of commands."""
    for part in (group, *(one.typer_instance for one in group.registered_groups)):
        for command in part.registered_commands if part is not None else ():
            if command.callback is not None:
                command.callback = errors_to_exit()(command.callback)
    app.registered_commands += group.registered_commands
    app.registered_groups += group.registered_groups


for _group in hook_results("pv_rl_commands"):
    _add(_group)


@app.callback()
def main(version: Annotated[bool, version_option(__version__)] = False) -> None:
    pass


@app.command()
def doctor(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="run=NAME and Hydra's overrides, to check the config of that run.", show_default=False
        ),
    ] = None,
) -> None:
    """Check this environment, and a run's config if one is named, in ten lines. Exit code 1 if a check fails."""
    works = importlib.import_module("pv_doctor").report(run or ())  # in the same wheel, above the core
    raise typer.Exit(0 if works else 1)


if __name__ == "__main__":
    app()
