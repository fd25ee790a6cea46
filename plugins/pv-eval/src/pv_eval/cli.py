"""Command line `pv-eval`: run, report, best-of-k, export and grades.

`pv-data` has the same commands under their older names. They import what they need when they run: --help is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pv_eval import __version__
from pv_eval.aggregate_command import aggregate
from pv_eval.board_command import board
from pv_eval.grades_command import by_meaning, grades
from pv_eval.report_command import report
from pv_eval.sets_command import sets
from pv_eval.train_data_command import train_data
from pv_judge.pages.text import plural
from pv_rl.exits import errors_to_exit, new_app, version_option
from pv_verdicts.formats import FORMATS

if TYPE_CHECKING:
    from pv_eval.best_of import BestOf

__all__ = ["app", "best_of_k", "data_app", "export", "run"]

SHOWN = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Values of k in the printed table, beside the last."""


def _sets() -> list[str]:
    from pv_eval.sets.catalogue import SETS

    return [f"{name}:" for name in SETS]


SetSpec: TypeAlias = Annotated[
    str,
    typer.Option(
        "--set",
        metavar="NAME[:PATH]",
        show_default=False,
        autocompletion=_sets,
        help="NAME:FILE, see `pv-eval sets`.",
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Option of the set, such as positive=6."),
]
Samples: TypeAlias = Annotated[int, typer.Option("-n", "--samples", help="Samples a pair (Avg@n).")]
Temperature: TypeAlias = Annotated[float, typer.Option(help="Sampling temperature.")]
TopP: TypeAlias = Annotated[float, typer.Option(help="Nucleus sampling.")]
MaxTokens: TypeAlias = Annotated[int, typer.Option(help="Tokens of a trace.")]
Prompt: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="A template with {{ problem }} and {{ proof }}.", show_default="the export's"),
]
Format: TypeAlias = Annotated[
    str,
    typer.Option(
        "--format",
        help="verdict (default), grade, first_error, ...",
        show_default=False,
        autocompletion=lambda: [*FORMATS.entries()],
    ),
]
FormatOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Option of the format, such as points=7."),
]


def _show_all(context: typer.Context, asked: bool) -> None:
    """Print the help with the options that --help hides, and exit."""
    if asked:
        for one in context.command.params:
            vars(one)["hidden"] = False
        typer.echo(context.get_help())
        raise typer.Exit


def run(
    set_spec: SetSpec,
    verifier: Annotated[
        str,
        typer.Option(
            show_default=False,
            metavar="URL|PATH",
            help="A server, a checkpoint, or traces.",
        ),
    ],
    out: Annotated[Path, typer.Option(show_default=False, help="Folder of the results.")],
    model: Annotated[str, typer.Option(help="The model's name at its server.")] = "",
    samples: Samples = 8,
    temperature: Temperature = 0.6,
    top_p: Annotated[float, typer.Option(help="Nucleus sampling.", hidden=True)] = 0.9,
    max_tokens: MaxTokens = 8192,
    seed: Annotated[int, typer.Option(help="Seed of all samples.", hidden=True)] = 0,
    send_seed: Annotated[
        bool, typer.Option(help="Send the seeds to the server.", show_default=False, hidden=True)
    ] = True,
    logits: Annotated[
        bool,
        typer.Option(help="Votes with logits.", show_default="no"),
    ] = False,
    set_option: SetOption = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Training set, for --overlap."),
    ] = None,
    overlap: Annotated[
        str, typer.Option(help="Trained questions: refuse, drop or keep.", show_default=False, hidden=True)
    ] = "refuse",
    limit: Annotated[int | None, typer.Option(help="Pairs, drawn by a hash.")] = None,
    verdict_format: Format = "",
    format_option: FormatOption = None,
    prompt: Annotated[
        Path | None,
        typer.Option(help="Prompt template.", show_default="the format's", hidden=True),
    ] = None,
    reference: Annotated[
        bool | None,
        typer.Option(help="Show reference solutions.", show_default="yes", hidden=True),
    ] = None,
    rubric: Annotated[
        bool | None,
        typer.Option(help="Show marking schemes.", show_default="yes", hidden=True),
    ] = None,
    server: Annotated[
        str, typer.Option(help="auto (default), vllm or transformers.", show_default=False, hidden=True)
    ] = "auto",
    server_argument: Annotated[
        list[str] | None, typer.Option(metavar="ARG", help="Argument of that server.", hidden=True)
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Of the client, such as limits.concurrency=8.",
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Step of recorded traces.", show_default="last", hidden=True)
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="Column of recorded traces: verdict=vote."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name in tables.", hidden=True)] = "",
    write_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report.", hidden=True)
    ] = True,
    help_all: Annotated[
        bool, typer.Option("--help-all", help="Show all options.", callback=_show_all, is_eager=True)
    ] = False,
) -> None:
    """Measure a verifier on a labelled set. The same command resumes.

    Example: pv-eval run --set opc:test.jsonl --verifier URL --out base
    """
    from rich.console import Console

    with errors_to_exit():
        from pv_eval.request import Request, Sampling
        from pv_eval.running import evaluate_verifier
        from pv_judge.scoring.command import read_options

        sampling = Sampling(
            n=samples,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            seed=seed,
            send_seed=send_seed,
            logits=logits,
        )
        request = Request(
            set_spec=set_spec,
            verifier=verifier,
            out=out,
            model=model,
            name=name,
            sampling=sampling,
            set_options=read_options(None, set_option or []),
            train=train,
            overlap=overlap,
            limit=limit,
            verdict_format=verdict_format,
            format_options=read_options(None, format_option or []),
            prompt=prompt,
            reference=reference,
            rubric=rubric,
            server=server,
            server_arguments=server_argument or [],
            client=client or [],
            step=step,
            columns=by_meaning(column or [], "verdict=vote"),
        )
        folder = evaluate_verifier(request, Console(stderr=True))
        typer.echo(f"wrote {folder}/votes.parquet, pairs.parquet, run.json")
    if write_report:
        report([folder], out=None, cases=3)


def best_of_k(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", show_default=False, help="Runs, as `pv-eval run` writes them."),
    ],
    score: Annotated[str, typer.Option(help="Score of a candidate: votes, logit or grade.")] = "votes",
    at_least: Annotated[
        int | None,
        typer.Option(
            min=2, help="Leave out problems with fewer candidates.", show_default="what four of five have"
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
) -> None:
    """How often the proof that a verifier picks among k of a problem is right: the exact expectation over subsets.

    Example: pv-eval best-of-k runs/base runs/trained
    """
    with errors_to_exit():
        import json

        from pv_eval.best_of import best_of_set
        from pv_eval.counted import read_counted
        from pv_eval.run_files import find_runs
        from pv_judge.files import write_atomically

        document: dict[str, Any] = {}
        for folder in find_runs(folders):
            run = read_counted(folder, traces=False)
            best = best_of_set(run.counts, by=score, at_least=at_least)
            name = run.info.verifier
            name = name if name not in document else f"{name} ({folder})"
            document[name] = _as_json(best)
            _print(name, best, score)
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


CHOSEN_BY = {"votes": "share of accepting votes", "logit": "mean logit", "grade": "mean grade"}
"""The candidate's score, by --score."""
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Numbers of candidates that the table shows, beside the largest."""


def _print(name: str, best: BestOf, score: str) -> None:
    from pv_judge.pages.blocks import Column, Paragraph, Table
    from pv_judge.pages.terminal import print_blocks, standard_output
    from pv_judge.pages.text import coefficient, plain

    fewest, most = best.candidates
    counted = (
        f"{plain(name, 80)}, best of k by {CHOSEN_BY[score]}: {plural(best.problems, 'problem')} with "
        f"{fewest if fewest == most else f'{fewest} to {most}'} candidates each"
    )
    if best.left_out:
        counted += f"; {plural(best.left_out, 'problem')} with fewer candidates left out"
    if best.without_score:
        counted += f"; {plural(best.without_score, 'candidate')} without a score, ranked last"
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


def export(
    set_spec: SetSpec,
    out: Annotated[Path, typer.Option(show_default=False, help="Folder; each harness gets one in it.")],
    to: Annotated[list[str] | None, typer.Option(help="lm-eval or inspect.", show_default="both")] = None,
    set_option: SetOption = None,
    samples: Samples = 8,
    temperature: Temperature = 0.6,
    top_p: TopP = 0.9,
    max_tokens: MaxTokens = 8192,
    prompt: Prompt = None,
) -> None:
    """Write a set as tasks of lm-evaluation-harness and inspect_ai, which run without our packages.

    Example: pv-eval export --set opc:test.jsonl --out tasks --to inspect
    """
    with errors_to_exit():
        from pv_data.export.prompt import VerifierPrompt
        from pv_eval.export import HARNESSES, export_tasks
        from pv_eval.request import Sampling
        from pv_eval.sets.catalogue import open_set
        from pv_judge.scoring.command import read_options

        sampling = Sampling(n=samples, temperature=temperature, top_p=top_p, max_tokens=max_tokens)
        found = open_set(set_spec, read_options(None, set_option or []))
        if any(pair.grade is not None for pair in found.pairs):
            typer.echo(
                f"note: the set {found.name} has grades. The tasks leave them out and ask whether a proof is right "
                "(has all points, or those of --set-option positive=N)",
                err=True,
            )
        for path in export_tasks(found, out, VerifierPrompt.load(prompt), sampling, to or list(HARNESSES)):
            typer.echo(f"wrote {path}")


app = new_app(
    "pv-eval", "Evaluate proof verifiers: ask for votes, and report tables, intervals and best-of-k.", {}
)


@app.callback()
def main(version: Annotated[bool, version_option(__version__)] = False) -> None:
    pass


data_app = typer.Typer()
"""The same commands under the names that they have in `pv-data`."""
for new, older, command in (
    ("run", "eval", run),
    ("report", "report", report),
    ("best-of-k", "best-of-k", best_of_k),
    ("export", "eval-export", export),
):
    app.command(new)(command)
    data_app.command(older)(command)
app.command("train-data")(train_data)
app.command("sets")(sets)
app.command("grades")(grades)
app.command("aggregate")(aggregate)
app.command("board")(board)
