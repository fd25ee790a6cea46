"""Command line of pv-runs: `pv-rl train`, `plan`, `report`, `watch` and `weights`.

Each command imports what it needs when it runs, so that --help stays fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_doctor.completion import complete

__all__ = ["MODES", "app"]

app = typer.Typer()
JUDGE = "reward.custom_reward_function.reward_kwargs.judge"
MODES = ["grpo", "dapo", "balanced", "dr_grpo", "vl_norm", "ba"]
MODES += ["prompt_mean", "token_mean", "seq_mean", "constant", "luspo"]
"""Our modes, for the completion of --mode, which does not import torch."""


@app.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
def train(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="run=NAME, and Hydra's overrides and options.",
            metavar="run=NAME ...",
            autocompletion=complete,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a run or a sweep to resume with the same config.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            "--dry-run",
            help="Only find what would make it fail; if so, exit with 1.",
        ),
    ] = False,
    help_: Annotated[
        bool, typer.Option("--help", help="Show this message, the runs and the groups, and exit.")
    ] = False,
) -> None:
    """Start a run, or a sweep with --multirun. Ctrl-C ends it with a checkpoint.

    Example: pv-rl train run=8b cluster=node8 recipe=balanced data_dir=data
    """
    from pv_rl.recipes import GROUPS, options

    arguments = arguments or []
    if help_ or (resume is None and not arguments and not check):
        typer.echo(context.get_help())
        typer.echo(f"\n run: {', '.join(options('runs'))}")
        for group in GROUPS:
            typer.echo(f" {group}: {', '.join(options(group))}")
        raise typer.Exit
    from rich.console import Console

    from pv_runs.train import command

    console = Console(soft_wrap=True)
    if check:
        from pv_doctor import quiet

        quiet()  # only the findings matter
    if resume is not None:
        right = command.resume(resume, arguments, console, only_check=check)
    else:
        from pv_runs.plan.preflight import check_plan

        right = command.train(arguments, console, only_check=check, more={"plan": check_plan})
    raise typer.Exit(0 if right else 1)


@app.command()
def plan(
    arguments: Annotated[
        list[str],
        typer.Argument(
            help="run=NAME and Hydra's overrides, as for pv-rl train.",
            metavar="run=NAME ...",
            autocompletion=complete,
        ),
    ],
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Write all numbers to this file; - is stdout.", show_default=False),
    ] = None,
) -> None:
    """Estimate memory, time and cost of a run before it starts. Exit code 1 if it cannot run.

    Example: pv-rl plan run=32b cluster=paper80
    """
    from pv_doctor import quiet
    from pv_runs.plan.command import plan_run

    quiet()
    raise typer.Exit(0 if plan_run(arguments, json_file=json_file) else 1)


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a sweep or of a run, or a folder of such folders.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/report")
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, help="Last steps that a final training value is the mean of.")
    ] = 5,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Config key to group runs by, for example recipe.eta. Repeat it for more keys.",
            show_default="the overrides in which runs differ",
        ),
    ] = None,
) -> None:
    """Compare the runs of a sweep: a table, a figure and a page.

    Example: pv-rl report runs/8b-sweep/2026-11-28_09-00-00
    """
    from pv_runs.report.command import report as write

    write(folder, out=out, last=last, by=by or ())


@app.command()
def watch(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of a run, or a folder that contains exactly one run.", show_default=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show everything once, and exit.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Also write a web page, watch.html in the run's folder.")
    ] = False,
    html_file: Annotated[
        Path | None, typer.Option(help="The same page in this file.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two updates.")] = 2.0,
    show: Annotated[
        list[str] | None,
        typer.Option(help="Also show this metric, or those of a pattern with *. Repeatable."),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            help="A metrics file of any trainer instead of a run: JSON lines, CSV or TensorBoard.",
            show_default=False,
        ),
    ] = None,
    name_map: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="With --metrics: verl's name of a metric and the file's.",
            metavar="NAME=THEIRS",
            show_default=False,
        ),
    ] = None,
    responses: Annotated[
        int,
        typer.Option(help="With --metrics: responses a step."),
    ] = 128,
) -> None:
    """Show a run live: progress, metrics over time, the last malformed traces.

    Example: pv-rl watch runs/small/2026-11-28_13-13-55
    """
    from pv_rl.errors import ConfigError
    from pv_runs.watch.command import watch as show_run
    from pv_runs.watch.foreign import FileView, read_map

    file = None
    if metrics is not None:
        from pv_runs.sentinel import SentinelConfig, Watcher

        config = SentinelConfig(responses=responses)
        file = FileView(
            metrics,
            names=read_map(name_map or ()),
            show=show or (),
            final=once,
            make_watcher=lambda: Watcher(config),
        )
    elif name_map:
        raise ConfigError("--map is for --metrics FILE; leave it out for the folder of a run")
    show_run(folder, file=file, show=show or (), once=once, html=html_file or html, interval=interval)


@app.command()
def weights(
    lengths: Annotated[
        list[str] | None,
        typer.Option(
            help="Response lengths of one prompt, such as 1,2,5. Repeat it, or write 1,2;3,4, for more prompts.",
            show_default=False,
        ),
    ] = None,
    rollouts: Annotated[
        Path | None,
        typer.Option(
            "--parquet",
            "--rollouts",
            help="Rollouts: a .parquet or .jsonl file, or verl's rollout_data_dir.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="A loss_agg_mode, such as balanced:0.4. Repeatable.",
            autocompletion=lambda: MODES,
            show_default="grpo, dapo, balanced",
        ),
    ] = None,
    step: Annotated[int | None, typer.Option(help="Step to read.", show_default="the last")] = None,
    group_column: Annotated[
        str | None,
        typer.Option(help="Column of the prompt (uid, prompt or input).", show_default=False),
    ] = None,
    length_column: Annotated[
        str | None,
        typer.Option(
            help="Column of the length: a number, a list to sum (a mask) or count (token ids), or text.",
            show_default=False,
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of a tokenizer.", show_default="count words"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.", show_default=False)
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Write all numbers to this file; - is stdout.", show_default=False),
    ] = None,
) -> None:
    """Compare modes before you train: token weight and share of the update, by response length.

    Example: pv-rl weights --lengths 10,20,400 --mode balanced:0.4 --mode dapo
    """
    from pv_runs.weights.command import show_weights

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
def schema(
    key: Annotated[
        str,
        typer.Argument(
            help="The KEY of `# @package KEY`, for a file of one group.",
            show_default="a whole run",
            autocompletion=lambda: ["sentinel", "plan", JUDGE],
        ),
    ] = "",
) -> None:
    """Print the JSON schema of a run's YAML file, by which an editor completes and checks it.

    Example: pv-rl schema > run.schema.json
    """
    import json

    from pv_runs.config_schema import config_schema

    typer.echo(json.dumps(config_schema(key), indent=1))
