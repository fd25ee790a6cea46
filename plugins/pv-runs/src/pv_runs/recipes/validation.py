"""Config validation with verl's own classes and checks, before any GPU is used."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
from collections.abc import Iterator, Mapping

from omegaconf import DictConfig, OmegaConf

from pv_rl.errors import ConfigError, PvRlError

__all__ = ["validate"]

BUILT = (
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "algorithm",
    "trainer.v1.separate_async.hybrid_rollout",
)
"""Parts that verl turns into dataclasses at the start of a run. Not `actor_rollout_ref.model`, which reads the model,
and `ref`, of which a worker first renames some keys (verl/workers/engine_workers.py:545)."""


def validate(config: DictConfig) -> None:
    """Build verl's config objects, then run `check_config` and verl's own `validate_config` (verl/utils/config.py).

    Raises:
        ConfigError: what verl says of the config.
    """
    added = dict((config.get("launch") or {}).get("env") or {})
    added.pop("VERL_PLATFORM", None)  # verl has chosen its platform: Hydra imports it for its configs
    with _environment(added):
        from verl.trainer.ppo.utils import need_critic, need_reference_policy
        from verl.trainer.ppo.v1.trainer_base import get_trainer_cls
        from verl.utils.config import omega_conf_to_dataclass, validate_config

        from pv_rl.verl_adapter.start import check_config

        try:
            for part in BUILT:
                omega_conf_to_dataclass(OmegaConf.select(config, part))
            with contextlib.redirect_stdout(io.StringIO()):
                check_config(config)
                inspect.unwrap(validate_config)(config, need_reference_policy(config), need_critic(config))
            if config.trainer.use_v1:
                get_trainer_cls(config.trainer.v1.trainer_mode)
                _check_mode(config)
        except PvRlError:
            raise
        except Exception as error:
            raise ConfigError(f"verl refuses this config: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _environment(values: Mapping[str, object]) -> Iterator[None]:
    """The variables that are not set already, for as long as this lasts."""
    added = {name: str(value) for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _check_mode(config: DictConfig) -> None:
    """The assertions of verl/trainer/ppo/v1/trainer_separate_async.py:56 and of its replay buffer's constructor, which
    verl reaches once its workers are up."""
    rollout, trainer = config.actor_rollout_ref.rollout, config.trainer
    if trainer.v1.trainer_mode != "separate_async":
        return
    batch, mini = config.data.train_batch_size, config.actor_rollout_ref.actor.ppo_mini_batch_size
    rounds = trainer.v1.separate_async.parameter_sync_step
    if batch != rounds * mini:
        raise ConfigError(
            f"data.train_batch_size is {batch} and has to be parameter_sync_step * ppo_mini_batch_size = "
            f"{rounds} * {mini}"
        )
    if rollout.nnodes < 1 or rollout.n_gpus_per_node < 1:
        raise ConfigError(
            f"actor_rollout_ref.rollout has nnodes={rollout.nnodes}, n_gpus_per_node={rollout.n_gpus_per_node}; "
            "separate_async needs 1 or more of each"
        )
    if rollout.checkpoint_engine.backend == "naive":
        raise ConfigError(
            "actor_rollout_ref.rollout.checkpoint_engine.backend is naive; nccl carries weights to other GPUs"
        )
