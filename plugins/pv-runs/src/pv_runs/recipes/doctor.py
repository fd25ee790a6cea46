"""Check of `pv-rl doctor RUN ...`: whether the config of a run composes and verl accepts it."""

from __future__ import annotations

from collections.abc import Sequence

from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import MODE, value
from pv_runs.recipes.checks import check
from pv_runs.recipes.compose import compose, split_run
from pv_runs.weight_metrics import remarks

__all__ = ["check_config"]

DEFAULT = "run=small"


def check_config(arguments: Sequence[str]) -> Finding:
    """Compose a run and validate it; without arguments, compose `run=small` alone.

    Args:
        arguments: `run=NAME` and overrides, as for `pv-rl train`.

    Raises:
        ConfigError: the run cannot be composed, or verl refuses its config.
    """
    import verl  # noqa: F401  (our configs extend its config)

    from pv_runs.recipes.validation import validate

    run, overrides = split_run(arguments or [DEFAULT])
    config = compose(run, overrides)
    if arguments:
        check(config, to_run=False, overrides=overrides)
        validate(config)
    text = f"run={run} composes with verl's ppo_trainer, {value(config, MODE)}"
    if remarked := " ".join(remarks(config)):
        remedy = "choose another weighting if this is not intended"
        return Finding(state="note", text=f"{text}; {remarked}", remedy=remedy)
    return Finding(state="ok", text=text)
