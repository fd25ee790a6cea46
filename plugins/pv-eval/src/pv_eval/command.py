"""The commands `pv-data eval` and `pv-data best-of-k`. They import what they need when they run: --help is instant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pv_rl.errors import PvRlError

if TYPE_CHECKING:
    from pv_eval.best_of_curves import BestOf

__all__ = ["best_of_k", "evaluate_command", "said"]


def evaluate_command(
    set_spec: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="NAME[:PATH]",
            show_default=False,
            help="What to evaluate on: curated:RUN, opc:FILE, proofbench:FILE, gradingbench:FILE, processbench:FILE, "
            "style:RUN, error_types:FILE, graded:FILE, table:FILE, or a source of pv-data.",
        ),
    ],
    verifier: Annotated[
        str,
        typer.Option(
            show_default=False,
            metavar="URL|PATH",
            help="An OpenAI-compatible address, a model's folder, a verl checkpoint (global_step_N), or traces that "
            "were sampled before (file, or verl's folder of dumps).",
        ),
    ],
    out: Annotated[Path, typer.Option(show_default=False, help="Folder for votes, report and cache.")],
    model: Annotated[str, typer.Option(help="The model's name at its server, and in tables.")] = "",
    samples: Annotated[int, typer.Option("-n", "--samples", help="Samples a pair (Avg@n).")] = 8,
    temperature: Annotated[float, typer.Option()] = 0.6,
    top_p: Annotated[float, typer.Option()] = 0.9,
    max_tokens: Annotated[int, typer.Option(help="Of a trace; a longer one has no verdict.")] = 8192,
    seed: Annotated[
        int, typer.Option(help="Each pair and sample has a seed of its own, drawn from this one.")
    ] = 0,
    send_seed: Annotated[bool, typer.Option(help="Send it; not for a server that refuses the field.")] = True,
    logits: Annotated[
        bool,
        typer.Option(
            help="Ask for log-probabilities: votes get the logit of their verdict (best-of-k --score logit)."
        ),
    ] = False,
    set_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the set, for example positive=6.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="The training set (run, verl parquet or plain file), which the set must not overlap."
        ),
    ] = None,
    overlap: Annotated[str, typer.Option(help="What to do then: refuse, drop or keep.")] = "refuse",
    limit: Annotated[
        int | None, typer.Option(help="Only so many pairs, drawn by a hash of their ids.")
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(help="A template with {{ problem }} and {{ proof }}.", show_default="the export's"),
    ] = None,
    server: Annotated[str, typer.Option(help="For a folder: auto, vllm or transformers.")] = "auto",
    server_argument: Annotated[
        list[str] | None, typer.Option(metavar="ARG", help="For the server's command line; may be repeated.")
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Of the client: endpoint.api_key_env=KEY, limits.concurrency=16, budget.usd_per_run=5, "
            "prices='{MODEL: {input: 0.3, output: 1.2}}', revision=DATE.",
        ),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Traces that were paid for.", show_default="answers.sqlite in --out")
    ] = None,
    step: Annotated[int | None, typer.Option(help="Of a folder of dumps.", show_default="the last")] = None,
    name: Annotated[str, typer.Option(help="In tables, instead of the model's.")] = "",
    keep_traces: Annotated[
        bool, typer.Option(help="Keep traces in the votes; the report shows some.")
    ] = True,
    report: Annotated[bool, typer.Option(help="Write the report too.")] = True,
    resamples: Annotated[int, typer.Option(help="Of the report's bootstrap; 0 for no intervals.")] = 1000,
) -> None:
    """Sample a verifier's verdicts on a labelled set, and measure them.

    Stop it at any moment, and give the same command again: what was sampled is kept.
    """
    from rich.console import Console

    with said("eval"):
        from pv_eval.running import evaluate_verifier
        from pv_eval.sampling import Sampling
        from pv_eval.wanted import Wanted
        from pv_judge.scoring.command import read_options

        console = Console(stderr=True)
        evaluate_verifier(
            Wanted(
                set_spec=set_spec,
                verifier=verifier,
                out=out,
                model=model,
                name=name,
                sampling=Sampling(
                    n=samples,
                    temperature=temperature,
                    top_p=top_p,
                    max_tokens=max_tokens,
                    seed=seed,
                    send_seed=send_seed,
                    logits=logits,
                ),
                set_options=read_options(None, set_option or []),
                train=train,
                overlap=overlap,  # pyright: ignore[reportArgumentType] - `settle` reads it
                limit=limit,
                prompt=prompt,
                server=server,
                server_arguments=server_argument or [],
                client=client or [],
                cache=cache,
                step=step,
                keep_traces=keep_traces,
            ),
            console,
        )
        typer.echo(f"wrote {out}/votes.parquet, pairs.parquet, run.json")
    if report:
        from pv_eval.report_command import report as write

        write([out], out=None, resamples=resamples, seed=0, cases=3)


def best_of_k(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", show_default=False, help="Runs, as `pv-data eval` writes them."),
    ],
    score: Annotated[str, typer.Option(help="What candidates are chosen by: votes or logit.")] = "votes",
    resamples: Annotated[int, typer.Option(help="Of the bootstrap; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    at_least: Annotated[
        int | None,
        typer.Option(
            min=2, help="Candidates of a problem that counts.", show_default="what four of five have"
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
) -> None:
    """How often the proof that a verifier picks among k of a problem is right: the exact expectation over subsets."""
    with said("best-of-k"):
        import json

        from pv_eval.best_of_curves import best_of_set
        from pv_eval.checks import check
        from pv_eval.counts import count_votes
        from pv_eval.files import read_run
        from pv_eval.intervals import Bootstrap
        from pv_rl.files import write_atomically

        how = Bootstrap(resamples=resamples, seed=seed)
        document: dict[str, Any] = {}
        for folder in folders:
            pairs, votes, info = read_run(folder)
            counts = count_votes(check(pairs, votes).refuse())
            best = best_of_set(counts, how, score, at_least=at_least)
            name = info.verifier if info.verifier not in document else f"{info.verifier} ({folder})"
            document[name] = _as_json(best)
            _print(name, best)
        if json_file is not None:
            text = json.dumps({"score": score, "verifiers": document}, allow_nan=False, indent=1)
            write_atomically(json_file, lambda file: file.write_text(text + "\n", encoding="utf-8"))
            typer.echo(f"wrote {json_file}")


def _as_json(best: BestOf) -> dict[str, Any]:
    def number(value: float) -> float | None:
        return value if value == value else None

    return {
        "problems": best.problems,
        "candidates": list(best.candidates),
        "left_out": best.left_out,
        "without_score": best.without_score,
        "curves": {
            line: [
                {"k": k, "value": number(one.value), "low": number(one.low), "high": number(one.high)}
                for k, one in zip(best.sizes, curve, strict=True)
            ]
            for line, curve in best.curves.items()
        },
    }


SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Numbers of candidates that the table shows, beside the largest."""


def _print(name: str, best: BestOf) -> None:
    from pv_judge.pages.blocks import Column, Paragraph, Table
    from pv_judge.pages.terminal import print_blocks, standard_output
    from pv_judge.pages.text import coefficient, plain

    fewest, most = best.candidates
    counted = (
        f"{plain(name, 80)}: {best.problems} problems, {fewest} to {most} candidates each; {best.left_out} with "
        f"fewer left out; {best.without_score} candidates without a score"
    )
    titles = {
        "ties: worst": "pessimistic",
        "ties: best": "optimistic",
        "random": "random",
        "oracle": "oracle",
    }

    def interval(k: int) -> str:
        one = best.curves["uniform"][k - 1]
        return f"{one.low:.3f} to {one.high:.3f}" if one.low == one.low else "-"

    columns: list[Column[int]] = [
        Column("k", str),
        Column("verifier", lambda k: coefficient(best.curves["uniform"][k - 1].value)),
        Column("interval", interval),
        *(
            Column(title, lambda k, line=line: coefficient(best.curves[line][k - 1].value))
            for title, line in titles.items()
        ),
    ]
    sizes = [k for k in best.sizes if k in SIZES or k == best.sizes[-1]]
    print_blocks([Paragraph(counted), Table.of(columns, sizes)], standard_output())


@contextmanager
def said(command: str) -> Iterator[None]:
    """An error that is the user's to mend is one line."""
    try:
        yield
    except (PvRlError, OSError) as error:
        from pv_judge.pages.text import plain

        typer.echo(f"pv-data {command}: {plain(error, 4000)}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        typer.echo(f"pv-data {command}: stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from error
