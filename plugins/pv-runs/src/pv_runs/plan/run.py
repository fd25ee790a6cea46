"""The command `pv-rl plan`: composes, checks and estimates a run."""

from __future__ import annotations

from collections.abc import Sequence

from pv_rl.errors import ConfigError
from pv_runs.plan.command import show
from pv_runs.plan.planning import make_plan
from pv_runs.recipes import check, compose
from pv_runs.recipes.compose import split_run

__all__ = ["plan_run"]


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
    from pv_rl.verl_adapter.validation import validate

    run, overrides = split_run(arguments)
    if "cluster=cpu" in overrides:
        raise ConfigError(
            "a plan is about GPUs, and cluster=cpu has none: name the cluster that is to be paid for"
        )
    config = compose(run, overrides)
    check(config, to_run=False, overrides=overrides)
    validate(config)
    plan = make_plan(config)
    show(plan, json_file=json_file)
    return plan.runs
