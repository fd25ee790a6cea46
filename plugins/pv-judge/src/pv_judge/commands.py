"""Commands `score` and `rejudge` of `pv-rl`. Each imports its modules when it runs, so that --help is fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.plugins import REWARDS

__all__ = ["app"]

app = typer.Typer()


@app.command()
def score(
    rollouts: Annotated[
        Path,
        typer.Option(
            "--parquet",
            "--rollouts",
            help="Rollouts: a .parquet or .jsonl file, or verl's rollout_data_dir.",
            show_default=False,
        ),
    ],
    reward: Annotated[
        str,
        typer.Option(
            help="Name of a reward, built-in or of a plugin.", autocompletion=lambda: [*REWARDS.entries()]
        ),
    ] = "verdict_fluency",
    options: Annotated[
        Path | None, typer.Option(help="YAML file of the reward's options.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="One option, such as judge.deadline_s=30. Repeat it for more.", show_default=False
        ),
    ] = None,
    step: Annotated[int | None, typer.Option(help="Step of a folder.", show_default="the last")] = None,
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
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of rows to score.", show_default="all")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write each row's reward to this .jsonl file. The same command resumes.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Score rollouts with a reward, without a trainer.

    Example: pv-rl score --rollouts traces.jsonl --reward verdict --out s.jsonl
    """
    from pv_judge.scoring.command import score_rollouts

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
        typer.Option(help="YAML file of a judge to ask.", show_default=False),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(help="File of the prompt.", show_default="the config's, or the built-in one"),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Least confidence of a finding that vetoes.",
            show_default="the config's, or 0.5",
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of rows, drawn at random.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the intervals.")] = 0,
    marks: Annotated[
        Path | None, typer.Option(help="A .csv or .jsonl file of human marks.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows (.parquet) or the report (.json).", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send the planned requests.")] = False,
) -> None:
    """Compare a ledger with another judge, prompt or threshold: agreement, rewards.

    Example: pv-rl rejudge runs/8b/ledger --threshold 0.7
    """
    from pv_judge.rejudge.command import rejudge as replay

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
