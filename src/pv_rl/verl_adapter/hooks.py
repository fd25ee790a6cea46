"""Calls the trainer hooks of a point, with the state of this process's run."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

from pv_rl.errors import ConfigError, PluginError
from pv_rl.step_state import StepState
from pv_rl.trainer_hooks import PACKAGES, table

__all__ = ["check_table", "names_our_reward", "run_hooks", "state_of"]

logger = logging.getLogger("pv_rl")

_state = StepState()
_logged: set[str] = set()


def state_of(trainer: Any = None, *, new: bool = False) -> StepState:
    """The state of this process's run; a new one on demand, and with another trainer than before."""
    global _state
    if new or (trainer is not None and _state.trainer not in (None, trainer)):
        _state = StepState()
    if trainer is not None:
        _state.trainer, _state.config = trainer, trainer.config
        _state.step = getattr(trainer, "global_steps", 0)
    return _state


def run_hooks(point: str, state: StepState) -> None:
    """Call the hooks of a point in order. What a hook raises ends the run, unless it names a metric for that."""
    for hook in table().hooks[point]:
        if not _holds(hook.condition, state.config):
            continue
        try:
            _function(hook.run)(state)
        except Exception:
            if not hook.failed:
                raise
            state.metrics[hook.failed] = 1.0
            if hook.name not in _logged:
                _logged.add(hook.name)
                logger.exception("the trainer hook %s failed, logged once; the run goes on", hook.name)


def check_table(config: Any) -> None:
    """Refuse a config that needs hooks which cannot run; a stock one goes on without them.

    Raises:
        ConfigError: a key of the config has no effect, because the package that reads it is not there.
        PluginError: two hooks give the same value, or one needs what nobody gives. The text names their plugins.
    """
    problems = "; ".join(table().problems)
    conditions = {hook.condition for hooks in table().hooks.values() for hook in hooks}
    for key, package in PACKAGES.items():
        if config.get(key) is not None and key not in conditions:
            raise ConfigError(
                f"the config has the key {key}, which the package {package} reads, and that is not installed. Run "
                f"pip install {package}, or remove the key. {problems}".strip()
            )
    if problems and any(_holds(condition, config) for condition in ("mode", "reward", *PACKAGES)):
        raise PluginError(f"trainer hooks that cannot run: {problems}")
    if problems:
        logger.error("pv-rl leaves out trainer hooks that cannot run: %s", problems)


@cache
def _function(run: str) -> Callable[[StepState], None]:
    return pkgutil.resolve_name(run)


def _holds(condition: str, config: Any) -> bool:
    if condition in ("mode", "reward"):  # without a config, the rows say it
        return config is None or (_names_our_mode if condition == "mode" else names_our_reward)(config)
    return not condition or (config is not None and config.get(condition) is not None)


def _names_our_mode(config: Any) -> bool:
    """Whether a verl config names a loss mode of ours, for the actor or for the critic."""
    from pv_rl.losses.mode import find_mode

    parts = ((config.get("actor_rollout_ref") or {}).get("actor"), config.get("critic"))
    return any(part and find_mode(part.get("loss_agg_mode")) is not None for part in parts)


def names_our_reward(config: Any) -> bool:
    """Whether a verl config's reward function is one of `pv_rl.rewards`."""
    function = (config.get("reward") or {}).get("custom_reward_function") or {}
    return str(function.get("path")).startswith("pkg://pv_rl.rewards.")
