"""Reward functions for TRL: pv-rl's rewards by name, with TRL's `None` for a row that has no reward."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pv_rl.errors import ConfigError, DataError, RunHalted
from pv_rl.reward_hooks import reward_numbers
from pv_rl.rewards import build_reward
from pv_rl.rewards.named import DROP_GROUP, ERROR, VALID, last_error, row, scorer

__all__ = ["check_columns", "drop_groups", "reward_function"]


def reward_function(name: str, *, label: str = "label", **options: Any) -> Callable[..., Any]:
    """The reward of this name as an async reward function of `trl.GRPOTrainer`.

    A row that abstains or whose reward fails gets `None`. `WeightedAdvantages` leaves out of the step that row or, with
    `drop_group`, its whole group. TRL logs means over rows as `pv_rl/reward/NAME`.

    Args:
        name: for example `verdict` or `verdict_fluency`, or a reward of a plugin.
        label: the data set's column with the label. A reward reads the other columns as `extra_info`.
        options: those of the reward, see docs/guides/rewards.md; a ConfigError if they do not fit it.
    """
    if options.get("on_failure") == "halt":
        raise ConfigError("on_failure=halt needs a hook of verl's trainer. In TRL, set on_failure=abstain")
    build_reward(name, options).prepare()
    score, failed = scorer(name), deque[bool](maxlen=64)

    def check(columns: Sequence[str]) -> None:
        if label not in columns:
            lacks = f"no column {label!r} for the labels of the reward {name!r}, among {', '.join(columns)}"
            raise DataError(f"the data set has {lacks}. Rename one, or set reward_function(label=...)")

    async def rewards(completions: Sequence[Any], log_metric: Any = None, **given: Any) -> list[float | None]:
        check([key for key, value in given.items() if isinstance(value, list)])
        row.set({"step": getattr(given.get("trainer_state"), "global_step", None)})
        sources = given.get("data_source", [""] * len(completions))
        columns = {k: v for k, v in given.items() if isinstance(v, list) and len(v) == len(completions)}
        extra = [{k: v[number] for k, v in columns.items()} for number in range(len(completions))]
        rows = zip(sources, map(_text, completions), given[label], extra, strict=True)
        infos = await asyncio.gather(*(score(*each, **options) for each in rows))
        vars(rewards)["dropped"] = [bool(info[DROP_GROUP]) for info in infos]  # for drop_groups
        for info in infos if log_metric else ():
            for metric, value in reward_numbers([info], [not info[VALID]]).items():
                log_metric(metric, value)  # TRL logs the mean over rows and ranks
        failed.extend(bool(info[ERROR]) for info in infos)
        if len(failed) >= 16 and 2 * sum(failed) > len(failed):
            raise RunHalted(f"the reward {name!r} failed for most of the last rows: {last_error[name]}")
        return [info["score"] if info[VALID] else None for info in infos]

    rewards.__name__, vars(rewards)["check_columns"] = name, check
    return rewards


def check_columns(trainer: Any) -> None:
    """Refuse a data set of `trl.GRPOTrainer` without the labels of a reward.

    A `rollout_func` may add columns, and so may a transform of the data set.
    """
    sets = trainer.eval_dataset if isinstance(trainer.eval_dataset, dict) else {"": trainer.eval_dataset}
    for dataset in () if getattr(trainer, "rollout_func", None) else (trainer.train_dataset, *sets.values()):
        transformed = (getattr(dataset, "format", None) or {}).get("type") == "custom"
        for function in (
            trainer.reward_funcs if getattr(dataset, "column_names", None) and not transformed else ()
        ):
            getattr(function, "check_columns", list)(dataset.column_names)


def drop_groups(rewards: Tensor, functions: Sequence[Any], group_size: int, gather: Any) -> None:
    """Set rewards (rows of all ranks, functions) to NaN, TRL's "no reward", in groups that a reward drops."""
    if flags := [function.dropped for function in functions if hasattr(function, "dropped")]:
        dropped = gather(torch.tensor(flags, device=rewards.device).any(dim=0))
        rewards[dropped.view(-1, group_size).any(dim=1).repeat_interleave(group_size)] = torch.nan


def _text(completion: Any) -> str:
    """The completion, or the content of a conversation's last message, if the model wrote that message."""
    last = {"content": completion} if isinstance(completion, str) else completion[-1] if completion else {}
    content = (last.get("role", "assistant") == "assistant" and last.get("content")) or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
