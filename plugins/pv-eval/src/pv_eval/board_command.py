"""Command `pv-eval board`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.exits import errors_to_exit

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
) -> None:
    """A leaderboard of verifiers by sets as static files, made from votes alone.

    Example: pv-eval board runs/base runs/trained --out board
    """
    from pv_eval.board.page import main_table
    from pv_eval.board.writing import make_board, write_board
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output
    from pv_judge.pages.text import one_line
    from pv_judge.pages.writing import check_folder

    with errors_to_exit():
        check_folder(out)
        found = make_board(folders, against=against)
        files = write_board(found, out)
    console = standard_output()
    print_blocks([main_table(found)], console)
    for one in found.refused:
        typer.echo(one_line(f"left out {one.folder}: {one.reason}"), err=True)
    for path in files:
        print_line(console, f"wrote {path}")
