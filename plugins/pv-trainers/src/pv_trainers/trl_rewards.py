"""Reward functions for TRL: pv-rl's rewards by name, with a row that has no reward as TRL's `None` (unscorable)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pv_rl.errors import ConfigError, DataError, RunHalted
from pv_rl.reward_hooks import broken_reason, reward_numbers
from pv_rl.rewards import build_reward
from pv_rl.rewards.named import DROP_GROUP, VALID, row, scorer

__all__ = ["reward_function"]


def reward_function(
    name: str, *, label: str = "label", **options: Any
) -> Callable[..., Coroutine[Any, Any, list[float | None]]]:
    """The reward of this name as an async reward function of `trl.GRPOTrainer`.

    A row that abstains, or for which the reward fails, gets `None`; `WeightedAdvantages` then leaves it out of the
    step. It also leaves out the whole group where the reward says so (`drop_group`). Means over the rows go into TRL's
    log as `pv_rl/reward/NAME`.

    Args:
        name: for example `verdict` or `verdict_fluency`; a plugin's too.
        label: the data set's column with the label.
        options: of the reward, see docs/rewards.md.

    Raises:
        ConfigError: there is no such reward, or the options do not fit it.
    """
    if options.get("on_failure") == "halt":
        raise ConfigError(
            "on_failure=halt needs pv-rl's hooks in verl's trainer; in TRL set on_failure=abstain"
        )
    build_reward(name, options).prepare()
    score = scorer(name)

    async def rewards(
        completions: Sequence[Any], trainer_state: Any = None, log_metric: Any = None, **columns: Any
    ) -> list[float | None]:
        """Score the completions of one process; the other arguments are as TRL gives them.

        Raises:
            DataError: the data set has no column `label`.
            RunHalted: the reward failed for most rows.
        """
        if label not in columns:
            given = sorted(key for key, column in columns.items() if isinstance(column, list))
            raise DataError(
                f"the data set has no column {label!r}, from which the reward {name!r} reads its labels; TRL gives "
                f"{', '.join(given)}. Rename the column, or name it by reward_function({name!r}, label=...)"
            )
        row.set({"step": getattr(trainer_state, "global_step", None)})
        sources = columns.get("data_source", [""] * len(completions))
        infos = await asyncio.gather(
            *(
                score(source, _text(completion), truth, **options)
                for source, completion, truth in zip(sources, completions, columns[label], strict=True)
            )
        )
        rewards.dropped = [bool(info[DROP_GROUP]) for info in infos]
        absent = [not info[VALID] for info in infos]
        for info, gone in zip(infos, absent, strict=True) if log_metric else ():
            for metric, value in reward_numbers([info], [gone]).items():
                log_metric(metric, value)  # TRL takes the mean over rows and processes
        if reason := broken_reason(infos):
            raise RunHalted(reason)
        return [None if gone else info["score"] for info, gone in zip(infos, absent, strict=True)]

    rewards.__name__ = name
    return rewards


def _text(completion: Any) -> str:
    """The completion, or the content of the last message of a conversation."""
    content = completion if isinstance(completion, str) else completion[-1].get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
