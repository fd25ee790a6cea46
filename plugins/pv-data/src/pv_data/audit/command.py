"""Commands `pv-data audit plan | bound`: compare audit plans, and compute exact bounds of counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pv_data.audit import (
    Risks,
    compare,
    confidence_each,
    interval,
    lower_bound,
    upper_bound,
    usual_plans,
)
from pv_data.audit.comparison import AGREEMENTS, MINUTES
from pv_judge.files import check_target, write_atomically
from pv_rl.exits import errors_to_exit

__all__ = ["app"]

app = typer.Typer(
    name="audit",
    help="Plan a human audit of labels, and compute what one has proven.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MOST = 10**9
"""Largest count. The bounds of far larger ones cannot be computed."""
Confidence = Annotated[float, typer.Option(help="Confidence of a bound, 0 to 1.")]


@app.callback()
def main() -> None:
    """Keeps `plan` and `bound` sub-commands, whatever their number."""


@app.command()
def plan(
    size: Annotated[
        int,
        typer.Option(
            "--slice-size",
            min=1,
            max=200_000,
            help="Labelled proofs of the slice; 1,440 is 20 times a pilot of 72.",
        ),
    ] = 1440,
    agreement: Annotated[
        list[float] | None, typer.Option(help="True agreement to show, 0 to 1. Can be repeated.")
    ] = None,
    good: Annotated[float, typer.Option(help="Agreement of a slice to accept.")] = 0.95,
    bad: Annotated[float, typer.Option(help="Agreement of a slice to discard.")] = 0.80,
    alpha: Annotated[float, typer.Option(help="Risk of discarding the good one.")] = 0.10,
    beta: Annotated[float, typer.Option(help="Risk of accepting the bad one.")] = 0.10,
    confidence: Confidence = 0.90,
    minutes: Annotated[float, typer.Option(help="Human minutes a proof.")] = MINUTES,
    finite: Annotated[
        bool, typer.Option("--finite", help="Draw from these proofs only, without replacement.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves: .png, .pdf or .svg.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all numbers to this file; - is stdout.")
    ] = None,
) -> None:
    """Compare audit plans: the paper's rounds, a fixed sample, a sequential test.

    Example: pv-data audit plan --slice-size 600
    """
    from pv_data.audit.figure import draw_comparison
    from pv_data.audit.tables import print_comparison
    from pv_judge.pages.figure import check_plot
    from pv_judge.pages.terminal import standard_output

    with errors_to_exit():
        if plot is not None:
            check_plot(plot)
        to_output = json_file is not None and str(json_file) == "-"
        if json_file is not None and not to_output:
            check_target("--json", json_file)
        plans = usual_plans(size, Risks(good=good, bad=bad, alpha=alpha, beta=beta))
        large = [one.name for one in plans if finite and one.most > size]
        plans = [one for one in plans if one.name not in large]
        result = compare(
            plans,
            size,
            agreements=agreement or AGREEMENTS,
            confidence=confidence,
            minutes=minutes,
            finite=finite,
        )
        if plot is not None:
            draw_comparison(result, plot)
        if json_file is not None:
            text = json.dumps(result.document(), allow_nan=False) + "\n"
            if to_output:
                typer.echo(text, nl=False)
                return
            write_atomically(json_file, lambda file: file.write_text(text, encoding="utf-8"))
        console = standard_output()
        print_comparison(result, console)
        if large:
            console.print(f"left out, they read more than {size} proofs: {'; '.join(large)}", soft_wrap=True)
        for file in (plot, json_file):
            if file is not None:
                console.print(f"wrote {file}", markup=False, soft_wrap=True)


@app.command()
def bound(
    agree: Annotated[int, typer.Argument(help="Proofs where the human mark is the label.")],
    checked: Annotated[int, typer.Argument(max=MOST, help="Proofs with a human mark.")],
    confidence: Confidence = 0.90,
    population: Annotated[
        int | None, typer.Option(max=MOST, help="Proofs of the whole slice, for a bound about these proofs.")
    ] = None,
    slices: Annotated[
        int,
        typer.Option(
            min=1, max=MOST, help="Slices whose bounds hold together (Sidak); 1 for this one alone."
        ),
    ] = 1,
) -> None:
    """Exact bounds of an agreement: Clopper-Pearson, or hypergeometric with --population.

    Example: pv-data audit bound 27 30
    """
    with errors_to_exit():
        each = confidence_each(confidence, slices)
        lower = lower_bound(agree, checked, each, population=population)
        upper = upper_bound(agree, checked, each, population=population)
        low, high = interval(agree, checked, each, population=population)
        seen = f" ({agree / checked:.2%})" if checked else ""
        typer.echo(f"{agree} of {checked} agree{seen}")
        if slices > 1:
            typer.echo(f"{confidence:g} for {slices} slices together: {each:.5f} each")
        typer.echo(f"at least  {lower:.4f}   one-sided, {each:.5g}")
        typer.echo(f"at most   {upper:.4f}   one-sided, {each:.5g}")
        typer.echo(f"between   {low:.4f} and {high:.4f}   two-sided, {each:.5g}")
