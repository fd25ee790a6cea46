"""Reward functions by name, in the form that verl loads:

    reward.custom_reward_function.path=pkg://pv_rl.rewards.named
    reward.custom_reward_function.name=verdict_fluency
    +reward.custom_reward_function.reward_kwargs.veto=abstain

`name` is the reward, ours or a plugin's, and `reward_kwargs` are its options.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from pv_rl.errors import VerlError
from pv_rl.plugins import REWARDS
from pv_rl.rewards.base import RewardInput
from pv_rl.rewards.build import CheckedReward, build_reward

__all__ = [
    "DROP_GROUP",
    "ERROR",
    "VALID",
    "abstention_is_served",
    "last_error",
    "plain",
    "row",
    "scorer",
]

logger = logging.getLogger("pv_rl")

VALID = "reward_valid"
"""Key of the extra info: 1 where there is a reward, 0 where the row abstains."""
DROP_GROUP = "reward_drop_group"
"""Key of the extra info: 1 where the whole group abstains with it."""
ERROR = "reward_error"
"""Key of the extra info: 1 where the reward failed, or its label is none. The row abstains."""

row: ContextVar[Mapping[str, Any]] = ContextVar("pv_rl_reward_row", default={})  # noqa: B039 - never written to
"""What is known of the row being scored and verl does not hand to a reward function: `uid`, `session`, `step`."""

Scorer = Callable[..., Coroutine[Any, Any, dict[str, float]]]

LONGEST = 1000
"""Characters of an error in the log."""

_served = False


def abstention_is_served() -> None:
    """Said by the verl adapter in every process where rows without a reward are kept out of the training."""
    global _served
    _served = True


def __getattr__(name: str) -> Scorer:
    """verl asks for the attribute `reward.custom_reward_function.name` of this module."""
    if name.startswith("_"):
        raise AttributeError(name)
    if "verl.experimental" in sys.modules and not _served:
        raise VerlError(
            f"the reward {name!r} may have no answer for a row, and pv-rl's adapter, which keeps such rows out of the "
            "training, is not active in this verl. Run `pv-rl doctor`; VERL_USE_EXTERNAL_PLUGINS must not leave it out."
        )
    return scorer(name)


last_error: dict[str, str] = {}
"""By reward, why it failed for a row, of the last such row in this process."""


@cache
def scorer(name: str) -> Scorer:
    """The reward function of this name, as verl calls it (verl/experimental/reward_loop/reward_manager/naive.py).

    Raises:
        ConfigError: at once if there is no such reward; at the first row if its options do not fit (in a verl run
            at start, see `pv_rl.verl_adapter.reward_workers`; where only a worker cannot build it, its rows abstain).
    """
    REWARDS.named(name)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, Any] | None = None,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
        **options: Any,
    ) -> dict[str, float]:
        """Score one row: `score`, the reward's metrics, `VALID`, `DROP_GROUP` and `ERROR`, the same for every row."""
        reward = None
        try:
            reward = _built(name, json.dumps(plain(options)))
            sample = RewardInput(
                response=solution_str or "",
                label=ground_truth,
                label_kind="any",  # the reward reads it
                data_source=str(data_source),
                extra=extra_info or {},
                router_address=reward_router_address,
                **row.get(),
            )
            output = await reward.score(sample)
        except Exception as error:  # whatever is wrong with a row or its reward, it must not vanish
            if reward is None and not _served:  # the driver of a verl run has built it once
                raise
            last_error[name] = f"{type(error).__name__}: {str(error)[:LONGEST]}"
            if next(_say_once(name, type(error.__cause__ or error)), False):
                logger.error(
                    "the reward %s failed for a row, which abstains; logged once for this type of error: %s",
                    *(name, last_error[name]),
                )
            metrics = dict.fromkeys(sorted((reward and reward.metric_names) or ()), 0.0)
            return {"score": 0.0, **metrics, VALID: 0.0, DROP_GROUP: 0.0, ERROR: 1.0}
        return {
            "score": output.score,
            **dict(sorted(output.metrics.items())),  # verl's legacy trainer wants one order in all processes
            VALID: float(output.valid),
            DROP_GROUP: float(output.drop_group),
            ERROR: 0.0,
        }

    return compute_score


@cache
def _say_once(name: str, kind: type[BaseException]) -> Iterator[bool]:
    """True the first time, for each reward and type of error."""
    return iter([True])


@cache
def _built(name: str, options: str) -> CheckedReward:
    return build_reward(name, json.loads(options))


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as plain dicts and lists: verl hands over what OmegaConf made of the config."""

    return {
        name: OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        for name, value in options.items()
    }
