"""Command `pv-rl plan`: composes a run, checks it, prints its plan and writes it as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pv_judge.files import check_target, write_atomically
from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.writing import to_json
from pv_rl.errors import ConfigError
from pv_runs.plan.output import blocks, document
from pv_runs.plan.planning import Plan, make_plan
from pv_runs.recipes import check, compose
from pv_runs.recipes.compose import split_run

__all__ = ["plan_run", "show"]


def plan_run(arguments: Sequence[str], *, json_file: str | None) -> bool:
    """Compose a run, hold it to verl's own checks, and show what it needs, takes and costs.

    Args:
        arguments: `run=NAME` and overrides. Data and keys of the environment need not be there.
        json_file: a file for all numbers; `-` is standard output.

    Returns:
        Whether nothing was found that stops it.

    Raises:
        ConfigError: a name that does not exist, or a config that verl or pv-rl refuses.
        SetupError: verl is not installed.
    """
    from pv_runs.preflight.supervised import is_supervised
    from pv_runs.recipes.validation import validate

    run, overrides = split_run(arguments)
    if "cluster=cpu" in overrides:
        raise ConfigError(
            "pv-rl plan estimates GPUs, and cluster=cpu has none. Name the cluster that you will use"
        )
    config = compose(run, overrides)
    if is_supervised(config):
        raise ConfigError(
            f"pv-rl plan estimates runs with rollouts, and run={run} is supervised and has none"
        )
    check(config, to_run=False, overrides=overrides)
    validate(config)
    plan = make_plan(config)
    show(plan, json_file=json_file)
    return plan.runs


def show(plan: Plan, *, json_file: str | None = None) -> None:
    """Print to standard output.

    Args:
        plan: what to show.
        json_file: a file that gets all of it as JSON; `-` for standard output, in the place of the tables.

    Raises:
        DataError: the file cannot be written.
        OSError: so do others.
    """
    if json_file is not None:
        text = to_json(document(plan))
        if json_file == "-":
            print(text, end="")  # noqa: T201 - the document, not a message
            return
        check_target("--json", Path(json_file))
        write_atomically(Path(json_file), lambda file: file.write_text(text, encoding="utf-8"))
    console = standard_output()
    print_blocks(blocks(plan), console)
    if json_file is not None:
        print_line(console, f"wrote {json_file}")
