"""Command line `pv-rl`: `doctor`, and the commands that installed plugins add through the hook `pv_rl_commands`."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from pv_rl import __version__
from pv_rl.exits import errors_to_exit, version_option
from pv_rl.plugins import hook_results

__all__ = ["app"]

PACKAGES = {
    "pv-judge": ("rejudge", "score"),
    "pv-runs": ("plan", "report", "train", "watch", "weights"),
    "pv-lab": ("quickstart",),
}
"""The commands of other packages of this repository."""
FOLDERS = {"pv-judge": "./plugins/pv-judge", "pv-runs": "./plugins/pv-judge ./plugins/pv-runs"}
FOLDERS["pv-lab"] = f"{FOLDERS['pv-runs']} ./plugins/pv-verdicts ./plugins/pv-cpu ./examples/lab"


class _Commands(TyperGroup):
    """Names the package of a command that is not installed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for package, commands in PACKAGES.items():
            if args and args[0] in commands and self.get_command(ctx, args[0]) is None:
                ctx.fail(
                    f"`pv-rl {args[0]}` comes with the package {package}, which is not installed. From a clone of "
                    f"pv-rl: pip install {FOLDERS[package]}"
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
    checks = importlib.import_module("pv_doctor")  # in the same wheel, above the core
    checks.quiet()  # only the findings matter
    console = Console(soft_wrap=True)
    with console.status("checking, up to a minute"):
        findings = checks.examine(run or ())
    marks = {"ok": "[green]ok   [/]", "note": "[yellow]note [/]", "wrong": "[red]wrong[/]"}
    for name, finding in findings.items():
        remedy = f" [bold]Remedy:[/] {escape(finding.remedy)}" if finding.remedy else ""
        line = " ".join(finding.text.split())  # one line and no control character, whatever an error holds
        text = escape("".join(c for c in line if c.isprintable()))
        console.print(f"{marks[finding.state]} {name:9}{text}{remedy}", highlight=False)
    wrong = sum(finding.state == "wrong" for finding in findings.values())
    notes = ", as the notes say" if any(finding.state == "note" for finding in findings.values()) else ""
    console.print(
        f"{wrong} of {len(findings)} checks failed." if wrong else f"This environment will work{notes}."
    )
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    app()
