"""verl's reward workers, where the config names one of our rewards: checked at start, told which row they score, and
started again when one dies.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pv_rl.rewards import named
from pv_rl.rewards.base import Prepared
from pv_rl.rewards.build import build_reward
from pv_rl.verl_adapter import contract

__all__ = ["names_our_reward", "patch_reward_loop"]

OURS = "pkg://pv_rl.rewards."


def names_our_reward(config: Any) -> bool:
    """Whether a verl config's reward function is one of `pv_rl.rewards`."""
    function = config.reward.get("custom_reward_function") or {}
    return str(function.get("path")).startswith(OURS)


def patch_reward_loop(module: ModuleType) -> None:
    """Wrap `RewardLoopManager._init_reward_loop_workers` and `RewardLoopWorker.compute_score`
    (verl/experimental/reward_loop/reward_loop.py:324, :145).

    Symptom without it: options that do not fit a reward fail every row of the first step, a reward knows neither uid
    nor step, and a worker that was killed fails every row that is dealt to it until the run ends. Can go when verl
    gives a reward function its row, builds it at start and restarts its workers.
    """
    manager, worker = module.RewardLoopManager, module.RewardLoopWorker
    start, score = manager._init_reward_loop_workers, worker.compute_score

    @functools.wraps(start)
    def _init_reward_loop_workers(self) -> None:
        if names_our_reward(self.config):
            contract.require_rewards()
            _prepare(self.config, self.reward_router_address)
            restarted = module.ray.remote(max_restarts=-1, max_task_retries=-1)
            self.reward_loop_workers_class = restarted(worker)
        start(self)

    @functools.wraps(score)
    async def compute_score(self, data):
        token = named.row.set(_row(data.non_tensor_batch))
        try:
            return await score(self, data)
        finally:
            named.row.reset(token)

    manager._init_reward_loop_workers = _init_reward_loop_workers
    worker.compute_score = compute_score
    named.abstention_is_served()


def _prepare(config: Any, router_address: str | None) -> None:
    function = config.reward.custom_reward_function
    if function.path == OURS + named.__name__.rpartition(".")[2]:
        reward = build_reward(function.name, named.plain(function.get("reward_kwargs") or {}))
        if isinstance(reward, Prepared):
            reward.prepare(router_address)


def _row(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What verl knows of a row and does not hand to a reward function; a trainer may lack any of it."""

    def first(name: str) -> Any:
        return columns[name][-1] if name in columns else None

    uid, session, step = first("uid"), first("session_id"), first("global_steps")
    return {
        "uid": "" if uid is None else str(uid),
        "session": None if session is None else int(session),
        "step": None if step is None else int(step),
    }
