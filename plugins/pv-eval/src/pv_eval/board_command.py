"""Command `pv-eval board`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.errors import PvRlError

__all__ = ["board"]


def board(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...",
            show_default=False,
            help="Runs, or folders of runs, of any verifiers and sets.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(show_default=False, help="Folder for index.html, README.md, board.json and board.csv."),
    ],
    against: Annotated[
        str,
        typer.Option(help="Verifier that the others are compared with.", show_default="the best of each set"),
    ] = "",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """A leaderboard of verifiers by sets as static files, made from votes alone."""
    from pv_eval.board.page import main_table
    from pv_eval.board.writing import make_board, write_board
    from pv_eval.intervals import Bootstrap
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output
    from pv_judge.pages.text import plain
    from pv_judge.pages.writing import check_folder

    try:
        check_folder(out)
        found = make_board(folders, Bootstrap(resamples=resamples, seed=seed), against=against)
        files = write_board(found, out)
    except (PvRlError, OSError) as error:
        typer.echo(f"pv-eval board: {plain(error, 2000)}", err=True)
        raise typer.Exit(1) from error
    console = standard_output()
    print_blocks([main_table(found)], console)
    for one in found.refused:
        typer.echo(f"pv-eval board: left out {one.folder}: {one.reason}", err=True)
    for path in files:
        print_line(console, f"wrote {path}")
