"""`pv-data contamination`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["contamination_command"]


def contamination_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")],
    against: Annotated[list[str], typer.Option(help="A test set, KIND:PATH, KIND a source. Repeat it.")],
    out: Annotated[Path | None, typer.Option(help="Markdown file; the terminal if not given.")] = None,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which a pair is listed.")] = 0.5,
) -> None:
    """Say which problems of a run stand in named test sets, or nearly."""
    from pv_data.duplicates import contamination as look
    from pv_data.duplicates import problems_of
    from pv_data.records import Problem
    from pv_data.run.manifest import check_run
    from pv_data.table import read_rows
    from pv_rl.errors import ConfigError, PvRlError
    from pv_rl.files import write_atomically

    try:
        check_run(run)
        sets = {}
        for one in against:
            kind, found, path = one.partition(":")
            if not found:
                raise ConfigError(f"--against {one}: give KIND:PATH, for example processbench:gsm8k.jsonl")
            sets[f"{kind} {Path(path).name}"] = problems_of(kind, Path(path))
        text = look(read_rows(run / "problems", Problem), sets, threshold=threshold).to_markdown()
        if out is None:
            typer.echo(text)
        else:
            write_atomically(out, lambda file: file.write_text(text, encoding="utf-8"))
    except (PvRlError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
