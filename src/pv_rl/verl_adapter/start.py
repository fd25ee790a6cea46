"""Patches of verl's `validate_config` and `Tracking`: the points at the start of a run and of its log."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING

from pv_rl.verl_adapter import contract
from pv_rl.verl_adapter.install import replace_everywhere

if TYPE_CHECKING:
    from omegaconf import DictConfig

__all__ = ["check_config", "patch_tracking", "patch_validate_config"]

# `import verl` imports this module in every process, and only the driver needs what the functions import.


def patch_validate_config(module: ModuleType) -> None:
    """Wrap `validate_config` (verl/utils/config.py:88), which every trainer of verl calls first, in the driver.

    Symptom without it: `+recipe=dapo` without a search path trains with verl's own weighting without a warning, a
    recipe may be overridden unseen, and a sentinel that cannot be made ends the run after minutes of starting. Can go
    when verl lets a plugin look at the config.
    """
    original = module.validate_config

    @functools.wraps(original)
    def validate_config(config, *arguments, **options):
        check_config(config)
        return original(config, *arguments, **options)

    replace_everywhere(module, "validate_config", validate_config)


def patch_tracking(module: ModuleType) -> None:
    """Wrap `Tracking.__init__` and `log` (verl/utils/tracking.py:62, :191), where every trainer logs a whole step.

    Symptom without it: nobody sees the numbers of a step. Can go when verl has callbacks for what it logs.
    """
    tracking = module.Tracking
    begin, log = tracking.__init__, tracking.log

    @functools.wraps(begin)
    def __init__(self, *arguments, **options):
        from pv_rl.trainer_hooks import run_hooks, state_of

        begin(self, *arguments, **options)
        before = state_of()  # the legacy trainer opens its log before anything else
        state = state_of(new=before.ended or (before.log is not None and before.trainer is None))
        if state.log is None:
            given = options.get("config", *arguments[3:4])
            state.log, state.config = self, state.config if state.config is not None else given
            run_hooks("log_opened", state)

    @functools.wraps(log)
    def logging_log(self, data, step, *arguments, **options):
        from pv_rl.trainer_hooks import run_hooks, state_of

        state = state_of()
        if isinstance(data, dict) and state.log is self:
            state.step, state.metrics = step, dict(data)
            run_hooks("log", state)
            data = state.metrics
        return log(self, data, step, *arguments, **options)

    tracking.__init__, tracking.log = __init__, logging_log


def check_config(config: DictConfig) -> None:
    """Check for errors that neither verl nor Hydra detects: the seams, and the hooks of the point `config`.

    Raises:
        ConfigError: a group that Hydra took for a key, settings that undo each other, a sentinel that cannot be made,
            or a key whose package is not installed.
        LossModeError: a recipe's values make no weighting.
        PluginError: trainer hooks that the config needs cannot run.
        VerlError: verl has not the seams that the config needs.
    """
    from pv_rl.step_state import StepState
    from pv_rl.trainer_hooks import check_table, run_hooks

    contract.check_run(config, warn=True)
    check_table(config)
    run_hooks("config", StepState(config=config))
