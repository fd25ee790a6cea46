"""`python -m pv_lab.mechanism --out DIR`."""

from pathlib import Path
from typing import Annotated

import typer

from pv_judge.pages.text import visible
from pv_lab.mechanism.command import FILES, show_mechanism
from pv_lab.mechanism.settings import Setting
from pv_rl.errors import PvRlError

MAIN = Setting()


def main(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    seeds: Annotated[int, typer.Option(help="Runs of each weighting.")] = 6,
    seed: Annotated[int, typer.Option(help="Start of the random numbers.")] = 0,
    eta: Annotated[float, typer.Option(help="Of the balanced weighting, 0 to 1.")] = 0.6,
    p_true: Annotated[float, typer.Option(help="Share of right proofs.")] = MAIN.p_true,
    learning_rate: Annotated[float, typer.Option(help="Step size.")] = MAIN.learning_rate,
    steps: Annotated[int, typer.Option(help="Training steps of the main setting.")] = MAIN.train_steps,
    processes: Annotated[
        int, typer.Option(help="Processes to train in; the numbers do not depend on it.")
    ] = 2,
) -> None:
    """Show how each weighting moves probability between accepting at once, checking once and checking repeatedly."""
    try:
        setting = Setting(p_true=p_true, learning_rate=learning_rate, train_steps=steps)
        took = show_mechanism(out=out, setting=setting, eta=eta, seeds=seeds, seed=seed, processes=processes)
    except (PvRlError, OSError) as error:
        typer.echo(f"error: {visible(str(error))}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{took:.0f} s; written to {out}: {', '.join(FILES)}")


if __name__ == "__main__":
    typer.run(main)
