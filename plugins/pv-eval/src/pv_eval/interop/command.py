"""The command `pv-data eval-export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_eval.command import said

__all__ = ["export_command"]


def export_command(
    set_spec: Annotated[
        str, typer.Option("--set", metavar="NAME[:PATH]", show_default=False, help="As for `pv-data eval`.")
    ],
    out: Annotated[Path, typer.Option(show_default=False, help="A folder for each harness is made in it.")],
    to: Annotated[list[str] | None, typer.Option(help="lm-eval or inspect.", show_default="both")] = None,
    set_option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the set.")] = None,
    samples: Annotated[int, typer.Option("-n", "--samples", help="Samples a pair.")] = 8,
    temperature: Annotated[float, typer.Option()] = 0.6,
    top_p: Annotated[float, typer.Option()] = 0.9,
    max_tokens: Annotated[int, typer.Option(help="Of a trace.")] = 8192,
    prompt: Annotated[
        Path | None,
        typer.Option(help="A template with {{ problem }} and {{ proof }}.", show_default="the export's"),
    ] = None,
) -> None:
    """Write a set as tasks of lm-evaluation-harness and inspect_ai, which need nothing of ours to run."""
    with said("eval-export"):
        from pv_data.export.prompt import VerifierPrompt
        from pv_eval.interop.exporting import HARNESSES, export_tasks
        from pv_eval.sampling import Sampling
        from pv_eval.sets.named import open_set
        from pv_judge.scoring.command import read_options

        sampling = Sampling(n=samples, temperature=temperature, top_p=top_p, max_tokens=max_tokens)
        found = open_set(set_spec, read_options(None, set_option or []))
        for path in export_tasks(found, out, VerifierPrompt.load(prompt), sampling, to or list(HARNESSES)):
            typer.echo(f"wrote {path}")
