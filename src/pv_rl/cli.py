"""Command line `pv-rl`: `doctor`, and the commands that installed plugins add through the hook `pv_rl_commands`."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from pv_rl import __version__
from pv_rl.exits import new_app, version_option
from pv_rl.plugins import hook_results

__all__ = ["app"]

ELSEWHERE = {
    **dict.fromkeys(("rejudge", "score"), "pv-judge"),
    **dict.fromkeys(("plan", "report", "schema", "train", "watch", "weights"), "pv-runs"),
    "quickstart": "pv-lab",
}

app = new_app("pv-rl", "Balanced token weighting and proof-verifier rewards for verl.", ELSEWHERE)
for _group in hook_results("pv_rl_commands"):
    app.registered_commands += _group.registered_commands
    app.registered_groups += _group.registered_groups


@app.callback()
def main(version: Annotated[bool, version_option(__version__)] = False) -> None:
    pass


@app.command()
def doctor(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="run=NAME and Hydra's overrides, to check the config of that run; or -- and a command of verl.",
            show_default=False,
            autocompletion=lambda ctx: importlib.import_module("pv_doctor").complete(ctx),
        ),
    ] = None,
) -> None:
    """Check this environment, and a run's config if one is named, in ten lines. Exit code 1 if a check fails.

    Example: pv-rl doctor run=8b cluster=node8 data_dir=data
    """
    checks = importlib.import_module("pv_doctor")  # in the same wheel, above the core
    raise typer.Exit(0 if checks.doctor(run or ()) else 1)


if __name__ == "__main__":
    app()
