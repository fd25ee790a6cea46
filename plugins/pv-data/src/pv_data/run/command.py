"""`pv-data run CONFIG`."""

from __future__ import annotations

from typing import Annotated

import typer

from pv_rl.errors import PvRlError

__all__ = ["run_command"]


def run_command(
    config: Annotated[
        str, typer.Argument(help="A YAML file, or the name of a config that comes with pv-data.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Hydra's overrides.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would ask and cost; ask nothing, write nothing.")
    ] = False,
    redo: Annotated[
        str, typer.Option(help="A stage to be done again, with all after it: collect, generate or judge.")
    ] = "",
    export_only: Annotated[
        bool, typer.Option("--export-only", help="Ask nothing; export what has a label so far.")
    ] = False,
) -> None:
    """Build a set: collect, generate, judge, split, export. The same command goes on where it stopped."""
    from rich.console import Console

    from pv_data.asking.asker import Stopped
    from pv_data.run.compose import compose
    from pv_data.run.ending import EXPORT
    from pv_data.run.pipeline import run
    from pv_data.run.plan import plan

    console = Console(stderr=True)
    try:
        settings = compose(config, overrides or [])
        if dry_run:
            plan(settings, Console())
            return
        folder = run(settings, console, redo=redo, export_only=export_only)
    except Stopped as error:
        said = (
            f"Stopped: {error}. What was answered is kept; the same command goes on, and with --export-only it exports "
            "what has a label so far."
        )
        console.print(said, style="yellow", markup=False)
        raise typer.Exit(3) from None
    except (PvRlError, OSError) as error:  # a full disk, a folder that cannot be written
        console.print(f"Error: {error}", style="red", markup=False)
        raise typer.Exit(2) from None
    typer.echo(f"{folder / EXPORT}: report/labels.md, dataset/README.md (the card), verl/*.parquet")
