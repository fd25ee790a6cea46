"""Command line of the lab: `pv-rl quickstart`.

The command imports what it needs when it runs, so that --help stays fast.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated

import typer

from pv_runs.commands import MODES

__all__ = ["app", "free_folder"]

app = typer.Typer()


@app.command()
def quickstart(
    steps: Annotated[int, typer.Option(help="Training steps.")] = 14,
    mode: Annotated[
        str,
        typer.Option(
            help="loss_agg_mode: balanced, balanced:0.4, dapo@batch ...", autocompletion=lambda: MODES
        ),
    ] = "balanced",
    seed: Annotated[int, typer.Option(help="Seed of the training data.")] = 0,
    trainer: Annotated[
        str,
        typer.Option(help="verl or trl (needs the package trl).", autocompletion=lambda: ["verl", "trl"]),
    ] = "verl",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run.",
            show_default="runs/quickstart-MODE-seed-SEED (-trl-MODE- with TRL), or the next free name",
        ),
    ] = None,
) -> None:
    """Train a small proof verifier with verl or TRL on this machine's CPU, and show what changed.

    Example: pv-rl quickstart --mode balanced:0.4
    """
    from rich.console import Console

    from pv_lab.environment import check_environment
    from pv_lab.quickstart.settings import Settings

    name = mode if trainer == "verl" else f"{trainer}-{mode}"
    folder = out or free_folder(Path("runs") / f"quickstart-{re.sub('[:@]', '-', name)}-seed-{seed}")
    settings = Settings(out=folder, steps=steps, mode=mode, seed=seed, trainer=trainer)
    check_environment("the quick start", settings.trainer)
    from pv_lab.quickstart.run import run_quickstart

    run_quickstart(settings, Console(soft_wrap=True))


def free_folder(folder: Path) -> Path:
    """`folder`, or `folder-2`, `folder-3` ... if an earlier run is in it."""
    names = (folder if n == 1 else folder.with_name(f"{folder.name}-{n}") for n in itertools.count(1))
    return next(name for name in names if not name.exists())
