"""verl's reward workers, where the config names one of our rewards: checked at start, told which row they score, and
started again when one dies.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pv_rl.recipes.choices import NAMED
from pv_rl.rewards import named
from pv_rl.rewards.build import build_reward
from pv_rl.trainer_hooks import names_our_reward, run_hooks, state_of
from pv_rl.verl_adapter import contract

__all__ = ["patch_reward_loop"]


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
    def _init_reward_loop_workers(self, *arguments, **options) -> None:
        state = state_of()
        state.config = self.config
        run_hooks("rewards_start", state)
        if names_our_reward(self.config):
            contract.check_run(self.config)
            _prepare(self.config, self.reward_router_address)
            # A few times only: a row that kills its worker would kill the next one too.
            restarted = module.ray.remote(max_restarts=-1, max_task_retries=3)
            self._pv_rl_config = module.ray.put(self.config)
            self.reward_loop_workers_class = _Kept(restarted(worker), self._pv_rl_config)
        start(self, *arguments, **options)

    @functools.wraps(score)
    async def compute_score(self, data, *arguments, **options):
        token = named.row.set(_row(data.non_tensor_batch))
        try:
            return await score(self, data, *arguments, **options)
        finally:
            named.row.reset(token)

    manager._init_reward_loop_workers = _init_reward_loop_workers
    worker.compute_score = compute_score
    named.abstention_is_served()


class _Kept:
    """An actor class that is given its config as an object which somebody keeps.

    Ray holds an argument of more than 100 kB, as verl's config is, only until an actor has started: started again, the
    actor does not find it and dies for good.
    """

    def __init__(self, actor: Any, config: Any) -> None:
        self._actor, self._config = actor, config

    def options(self, **options: Any) -> _Kept:
        return _Kept(self._actor.options(**options), self._config)

    def remote(self, _config: Any, *arguments: Any) -> Any:
        return self._actor.remote(self._config, *arguments)


def _prepare(config: Any, router_address: str | None) -> None:
    function = config.reward.custom_reward_function
    if function.path == NAMED:
        options = named.plain(function.get("reward_kwargs") or {})
        build_reward(function.name, options).prepare(router_address)


def _row(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What verl knows of a row and does not hand to a reward function; a trainer may lack any of it."""
    kinds = {
        "uid": ("uid", str),
        "session": ("session_id", int),
        "step": ("global_steps", int),
        "prompt": ("raw_prompt", lambda chat: "\n\n".join(str(one.get("content") or "") for one in chat)),
    }
    found = {name: columns[column][-1] for name, (column, _) in kinds.items() if column in columns}
    return {name: kinds[name][1](value) for name, value in found.items() if value is not None}
