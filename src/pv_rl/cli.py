"""The command `pv-rl`. Each command imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from pv_rl import __version__
from pv_rl.errors import PvRlError

__all__ = ["app"]

app = typer.Typer(
    name="pv-rl",
    help="Balanced token weighting and proof-verifier rewards for verl.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

lab = typer.Typer(
    help="The lab's verifier under each weighting and seed, side by side.", no_args_is_help=True
)
app.add_typer(lab, name="lab")


@contextmanager
def _said() -> Iterator[None]:
    """An error that is the user's to mend is one line, and Ctrl-C is no error."""
    errors = Console(stderr=True, soft_wrap=True)
    try:
        yield
    except (PvRlError, OSError) as error:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        errors.print("stopped; nothing is left running")
        raise typer.Exit(130) from None


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _hush() -> None:
    """Keep verl and Ray from talking while they are imported."""
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def quickstart(
    steps: Annotated[int, typer.Option(help="Training steps.")] = 20,
    mode: Annotated[
        str, typer.Option(help="loss_agg_mode: balanced, balanced:0.4, dapo@batch ...")
    ] = "balanced",
    seed: Annotated[int, typer.Option(help="Seed of the training data.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run.", show_default="runs/quickstart-MODE-seed-SEED, or the next free name"
        ),
    ] = None,
) -> None:
    """Train a small proof verifier with verl on this machine's CPU and show what changed."""
    from pv_rl.quickstart.settings import Settings, check_environment

    with _said():
        folder = out or _free_folder(Path("runs") / f"quickstart-{re.sub('[:@]', '-', mode)}-seed-{seed}")
        settings = Settings(out=folder, steps=steps, mode=mode, seed=seed)
        check_environment()
        from pv_rl.quickstart.run import run_quickstart

        run_quickstart(settings, Console(soft_wrap=True))


def _free_folder(folder: Path) -> Path:
    """`folder`, or `folder-2`, `folder-3` ... if an earlier run is in it."""
    names = (folder if n == 1 else folder.with_name(f"{folder.name}-{n}") for n in itertools.count(1))
    return next(name for name in names if not name.exists())


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False
)
def train(
    context: typer.Context,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a run or a sweep: go on from its last checkpoint, with the same config.",
            show_default=False,
        ),
    ] = None,
    help_: Annotated[
        bool, typer.Option("--help", help="Show this message, the runs and the groups, and exit.")
    ] = False,
) -> None:
    """Start a run by name: pv-rl train run=8b cluster=node8 recipe=balanced ... (or a sweep, with --multirun).

    Takes Hydra's overrides and options. The first Ctrl-C ends the run after its step, with a checkpoint.
    """
    from pv_rl.recipes.groups import GROUPS, options, runs

    if help_ or (resume is None and not context.args):
        typer.echo(context.get_help())
        typer.echo(f"\n run: {', '.join(runs())}")
        for group in GROUPS:
            typer.echo(f" {group}: {', '.join(options(group))}")
        raise typer.Exit
    from pv_rl.train import command

    with _said():
        if resume is not None:
            command.resume(resume, context.args, Console(soft_wrap=True))
        else:
            command.train(context.args)


@app.command()
def plan(
    arguments: Annotated[
        list[str],
        typer.Argument(help="run=NAME and Hydra's overrides, as for pv-rl train.", metavar="run=NAME ..."),
    ],
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json", help="Write all numbers to this file; - is standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Say before any GPU is paid for what a run needs, takes and costs. Exit code 1 if it cannot run."""
    from pv_rl.plan.run import plan_run

    _hush()
    with _said():
        raise typer.Exit(0 if plan_run(arguments, json_file=json_file) else 1)


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a sweep or of a run, or one that holds such folders.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/report")
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="Steps over which a final training value is a mean.")] = 5,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Key that tells settings apart, recipe.eta. Repeat it.",
            show_default="the overrides in which runs differ",
        ),
    ] = None,
) -> None:
    """Put the runs of a sweep side by side: a table, a figure, a page."""
    from pv_rl.report.command import report as write

    with _said():
        write(folder, out=out, last=last, by=by or ())


@lab.command("run")
def lab_run(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="Hydra's overrides of run=lab, the same for all runs.",
            metavar="[KEY=VALUE ...]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs.", show_default="runs/lab-whole")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option(help="A loss_agg_mode. Repeat it.", show_default="grpo, dapo, balanced"),
    ] = None,
    eta: Annotated[
        list[float] | None,
        typer.Option(help="One more weighting, balanced:ETA. Repeat it.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each weighting.")] = 3,
    first_seed: Annotated[int, typer.Option(help="The first of the seeds.")] = 0,
    steps: Annotated[int, typer.Option(help="Training steps of a run.")] = 24,
) -> None:
    """Train the lab's verifier with verl under each weighting and seed. The same command goes on where it stopped."""
    with _said():
        from pv_rl.lab.runs.settings import MODES, OUT, LabSettings

        settings = LabSettings(
            out=out or OUT,
            modes=(*(modes or MODES), *(f"balanced:{one}" for one in eta or ())),
            seeds=seeds,
            first_seed=first_seed,
            steps=steps,
            overrides=tuple(overrides or ()),
        )
        from pv_rl.lab.runs import run_lab

        run_lab(settings, Console(soft_wrap=True))


@lab.command("report")
def lab_report(
    folder: Annotated[Path, typer.Argument(help="Folder of pv-rl lab run.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/report")
    ] = None,
) -> None:
    """Put the weightings side by side: lengths, accuracy by class, kinds of traces, at start, middle and end."""
    with _said():
        from pv_rl.lab.runs.report import report_lab

        report_lab(folder, out=out)


@app.command()
def watch(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, or one that holds just one.")],
    once: Annotated[bool, typer.Option("--once", help="Show one frame with all rows, and leave.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Keep a page up to date as well: watch.html in the run's folder.")
    ] = False,
    html_file: Annotated[
        Path | None, typer.Option(help="The same, in this file.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.")] = 2.0,
) -> None:
    """Show a run live, until it ends or Ctrl-C: where it is, its numbers over time, its last malformed traces."""
    from pv_rl.watch.command import watch as show

    with _said():
        show(folder, once=once, html=html_file or html, interval=interval)


@app.command()
def doctor(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="run=NAME and Hydra's overrides, to check the config of that run.", show_default=False
        ),
    ] = None,
) -> None:
    """Check this environment, and a run's config if one is named, in ten lines. Exit code 1 if a check fails."""
    from pv_rl.doctor import examine

    _hush()  # what matters of it is in the findings
    console = Console(soft_wrap=True)
    with console.status("looking around, up to a minute"):
        findings = examine(run or ())
    marks = {"ok": "[green]ok   [/]", "note": "[yellow]note [/]", "wrong": "[red]wrong[/]"}
    for name, finding in findings.items():
        remedy = f" [bold]Remedy:[/] {escape(finding.remedy)}" if finding.remedy else ""
        line = " ".join(finding.text.split())  # one line and no control character, whatever an error holds
        text = escape("".join(c for c in line if c.isprintable()))
        console.print(f"{marks[finding.state]} {name:9}{text}{remedy}", highlight=False)
    wrong = sum(finding.state == "wrong" for finding in findings.values())
    notes = ", as the notes say" if any(finding.state == "note" for finding in findings.values()) else ""
    console.print(
        f"{wrong} of {len(findings)} checks failed." if wrong else f"This environment will work{notes}."
    )
    raise typer.Exit(1 if wrong else 0)


@app.command()
def weights(
    lengths: Annotated[
        list[str] | None,
        typer.Option(
            help="Response lengths of one prompt, 1,2,5. Repeat it, or put ';' between, for more prompts.",
            show_default=False,
        ),
    ] = None,
    rollouts: Annotated[
        Path | None,
        typer.Option(
            "--parquet",
            "--rollouts",
            help="A .parquet or .jsonl file of rollouts, or a folder of them (verl's trainer.rollout_data_dir).",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="A loss_agg_mode: balanced:0.4, dapo@batch ... Repeat it to compare.",
            show_default="grpo, dapo, balanced",
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Step to take of the rollouts.", show_default="the last")
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of the prompt.", show_default="uid, prompt or input")
    ] = None,
    length_column: Annotated[
        str | None,
        typer.Option(
            help="Column of the length: a number, a list to sum (a mask) or count (token ids), or text.",
            show_default="response_length, length, response_mask, responses, response_ids, output or response",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of a tokenizer, to measure text in tokens.", show_default="count words"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw a picture to this .png, .pdf or .svg.", show_default=False)
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json", help="Write all numbers to this file; - is standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Show what modes do before you train: weight of a token and share of the update, by response length."""
    from pv_rl.weights.command import show_weights

    with _said():
        show_weights(
            lengths=lengths or (),
            rollouts=rollouts,
            modes=mode or (),
            step=step,
            group_column=group_column,
            length_column=length_column,
            tokenizer=tokenizer,
            plot=plot,
            json_file=json_file,
        )


@app.command()
def score(
    rollouts: Annotated[
        Path,
        typer.Option(
            "--parquet",
            "--rollouts",
            help="A .parquet or .jsonl file of rollouts, or a folder of them (verl's trainer.rollout_data_dir).",
            show_default=False,
        ),
    ],
    reward: Annotated[
        str, typer.Option(help="A reward by its name, ours or a plugin's.")
    ] = "verdict_fluency",
    options: Annotated[
        Path | None, typer.Option(help="YAML file of the reward's options.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="One option, judge.deadline_s=30. Repeat it.", show_default=False),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Step to take of a folder.", show_default="the last")
    ] = None,
    response_column: Annotated[
        str | None,
        typer.Option(help="Column of the trace.", show_default="output, response, responses or trace"),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="Column of the label.", show_default="gts, label, ground_truth or verl's reward_model"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score so many rows.", show_default="all")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write each row's reward to this .jsonl file as it is scored. The same command resumes.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Try a reward on rollouts, without a trainer."""
    from pv_rl.scoring.command import score_rollouts

    with _said():
        score_rollouts(
            reward=reward,
            rollouts=rollouts,
            options=options,
            settings=settings or (),
            step=step,
            response_column=response_column,
            label_column=label_column,
            limit=limit,
            out=out,
        )


@app.command()
def rejudge(
    ledger: Annotated[Path, typer.Argument(help="A ledger's folder, or one Parquet file of it.")],
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file of the judge to ask.", show_default="nobody is asked"),
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="File of the prompt.", show_default="the config's, or ours")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Confidence from which a finding vetoes.", show_default="the config's, or 0.5"
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many rows, drawn at random.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the intervals.")] = 0,
    marks: Annotated[
        Path | None, typer.Option(help="A .csv or .jsonl file of human marks.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows (.parquet) or the report (.json).", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send what the plan says.")] = False,
) -> None:
    """Replay a ledger against another judge, prompt or threshold: agreement, and what rewards would have been."""
    from pv_rl.rejudge.command import rejudge as replay

    with _said():
        replay(
            ledger=ledger,
            config=config,
            prompt=prompt,
            threshold=threshold,
            sample=sample,
            seed=seed,
            marks=marks,
            out=out,
            yes=yes,
        )


if __name__ == "__main__":
    app()
