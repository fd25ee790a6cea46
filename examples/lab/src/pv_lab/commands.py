"""Command line of the lab: `pv-rl quickstart` and `pv-rl lab`.

Each command imports what it needs when it runs, so that --help stays fast.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["app", "free_folder"]

app = typer.Typer()
lab = typer.Typer(
    help="Train the lab's verifier with several weightings and seeds, and compare them.", no_args_is_help=True
)
app.add_typer(lab, name="lab")


@app.command()
def quickstart(
    steps: Annotated[int, typer.Option(help="Training steps.")] = 16,
    mode: Annotated[
        str, typer.Option(help="loss_agg_mode: balanced, balanced:0.4, dapo@batch ...")
    ] = "balanced",
    seed: Annotated[int, typer.Option(help="Seed of the training data.")] = 0,
    trainer: Annotated[str, typer.Option(help="verl or trl (needs the package trl).")] = "verl",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run.",
            show_default="runs/quickstart-MODE-seed-SEED (-trl-MODE- with TRL), or the next free name",
        ),
    ] = None,
) -> None:
    """Train a small proof verifier with verl or TRL on this machine's CPU, and show what changed."""
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


@lab.command("run")
def lab_run(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="Hydra overrides of run=lab, the same for all runs.",
            metavar="[KEY=VALUE ...]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs.", show_default="runs/lab-whole")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option(help="A loss_agg_mode. Repeat it for several.", show_default="grpo, dapo, balanced"),
    ] = None,
    eta: Annotated[
        list[float] | None,
        typer.Option(help="One more weighting, balanced:ETA. Repeat it for several.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of runs of each weighting.")] = 3,
    first_seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    steps: Annotated[int, typer.Option(help="Training steps of a run.")] = 24,
) -> None:
    """Train the lab's verifier with verl, with each weighting and seed. The same command resumes where it stopped."""
    from pv_lab.runs.settings import MODES, OUT, LabSettings

    settings = LabSettings(
        out=out or OUT,
        modes=(*(modes or MODES), *(f"balanced:{one}" for one in eta or ())),
        seeds=seeds,
        first_seed=first_seed,
        steps=steps,
        overrides=tuple(overrides or ()),
    )
    from pv_lab.runs import run_lab

    run_lab(settings, Console(soft_wrap=True))


@lab.command("report")
def lab_report(
    folder: Annotated[Path, typer.Argument(help="Folder of pv-rl lab run.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/report")
    ] = None,
) -> None:
    """Compare the weightings: lengths, accuracy by class and kinds of traces at the start, the middle and the end."""
    from pv_lab.runs.report import report_lab

    report_lab(folder, out=out)
