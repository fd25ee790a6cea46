"""verl's reward workers, where the config names one of our rewards: checked at start, told which row they score, and
started again when one dies.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pv_rl.errors import ConfigError
from pv_rl.rewards import named
from pv_rl.rewards.base import Prepared
from pv_rl.rewards.build import build_reward
from pv_rl.trainer_hooks import names_our_reward, run_hooks, state_of
from pv_rl.verl_adapter import contract

__all__ = ["patch_reward_loop"]

MANAGERS = ("naive", "dapo")
"""verl's reward managers that hand on what a reward function returns."""


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
    reward = config.reward
    function, manager = reward.custom_reward_function, reward.reward_manager
    if manager.source != "register" or manager.name not in MANAGERS:
        raise ConfigError(
            f"reward.reward_manager.name={manager.name}: with a reward of pv-rl it is one of {', '.join(MANAGERS)}. "
            "Others of verl's make up a reward where there is none (rate_limited gives 0); limits are the judge's own"
        )
    if reward.reward_model.enable and not reward.reward_model.enable_resource_pool:
        raise ConfigError(
            "reward.reward_model.enable_resource_pool=false: verl calls a reward function without its row where the "
            "reward model is colocated; set it to true, or serve the model outside the run"
        )
    if "async_training" in config:
        raise ConfigError(
            "verl's fully_async_policy trains in another process than it rewards in, where no row could abstain: use "
            "trainer.v1.trainer_mode=separate_async, or a reward function of your own"
        )
    if function.path == f"pkg://{named.__name__}":
        built = build_reward(function.name, named.plain(function.get("reward_kwargs") or {}))
        if isinstance(built, Prepared):
            built.prepare(router_address)


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
