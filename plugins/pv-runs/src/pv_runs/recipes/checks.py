"""Config checks before a run: errors that verl misses, or finds only after minutes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_doctor.reward import check_abstention, check_reward
from pv_judge.config import KEY_LIKE
from pv_judge.hydra_errors import unreadable
from pv_rl.errors import ConfigError
from pv_rl.plugins import VERL_MODES
from pv_rl.recipes.choices import MODE, check_choices, value
from pv_rl.rewards.named import plain
from pv_rl.step_state import StepState
from pv_runs.hydra_record import flatten

__all__ = ["check"]

SECRET = re.compile(
    r"(?:^|_)(?:API)?KEYS?(?:_|$)|(?:^|_)TOKENS?(?:_|$)|SECRET|PASSW|CREDENTIAL", re.IGNORECASE
)
"""Name of a variable that holds a secret: HF_TOKEN, but not TOKENIZERS_PARALLELISM."""
SETTING = re.compile(r"(?:.*[._])?(?:api_?key|secret|password|(?:auth|access)_token)", re.IGNORECASE)
LONG = re.compile(r"(?=[A-Z]{0,99}\d)[A-Z0-9]{16,}", re.IGNORECASE)
"""What a key has, and a name of words rarely: `hf-qwen3-8b-verifier` has it not."""
VARIABLES = ("launch.env", "ray_kwargs.ray_init.runtime_env.env_vars")


def check(config: DictConfig, *, to_run: bool = True, overrides: Sequence[str] | None = None) -> None:
    """Check GPUs, weighting, and what only a run needs: data, model and reward, with its environment.

    Args:
        config: composed.
        to_run: whether it is to be started here.
        overrides: Hydra's, with which it was composed; None: those of the command line, where Hydra runs.

    Raises:
        ConfigError: `separate_async` on GPUs that cannot be divided, a setting that undoes another, a value that is
            missing, a secret in it, or a reward whose options do not fit it.
        LossModeError: a weighting that nobody knows.
    """
    _check_gpus(config)
    mode = value(config, MODE)
    if mode not in VERL_MODES:
        from pv_rl.losses import resolve_mode

        resolve_mode(str(mode))
    check_choices(config, overrides)
    check_abstention(StepState(config=config))
    if not to_run:
        check_reward(config)
        return
    for key in ("data_dir", "model_path"):
        if OmegaConf.is_missing(config, key):
            raise ConfigError(f"{key} is missing: name it, {key}=..." + _data_hint(key))
    _check_secrets(config)
    _check_reward(config)


def _check_gpus(config: DictConfig) -> None:
    mode = value(config, "trainer.v1.trainer_mode")
    cluster = config.get("cluster")
    if mode == "separate_async" and cluster is not None and OmegaConf.is_missing(cluster.train, "nodes"):
        raise ConfigError(
            f"trainer_mode=separate_async trains and rolls out on GPUs of their own, and this cluster has "
            f"{cluster.nodes * cluster.gpus_per_node}. Take trainer_mode=sync or colocate_async, a larger cluster, or "
            "say how to divide it: cluster.train.nodes=1 cluster.train.gpus_per_node=1 cluster.rollout.nodes=1 "
            "cluster.rollout.gpus_per_node=1"
        )
    for key in ("trainer.nnodes", "trainer.n_gpus_per_node"):
        count = value(config, key)
        if not isinstance(count, int) or count < 1:
            raise ConfigError(f"{key} is {count!r}; it has to be 1 or more")


def _check_reward(config: DictConfig) -> None:
    try:
        plain(config.reward.custom_reward_function)
    except OmegaConfBaseException as error:
        raise ConfigError(f"the reward's options cannot be read: {unreadable(error)}") from error
    check_reward(config, build_all=True)


def _check_secrets(config: DictConfig) -> None:
    for place in VARIABLES:
        for name in OmegaConf.select(config, place) or ():
            if SECRET.search(str(name)):
                raise ConfigError(
                    f"{place}.{name} looks like a secret, and {place} is written to files of the run: export {name} "
                    "in the environment of pv-rl train instead, which the run inherits"
                )
    for key, text in flatten(OmegaConf.to_container(config)):
        named = SETTING.fullmatch(key) and text not in ("", "null", "EMPTY")
        if named or (KEY_LIKE.fullmatch(text) and LONG.search(text)):
            raise ConfigError(
                f"{key} looks like a secret (value not shown), and verl writes the config to its log and its loggers. "
                "Export the secret in the environment of pv-rl train, and let the code that needs it read it there"
            )


def _data_hint(key: str) -> str:
    return ", a folder with train.parquet and test.parquet" if key == "data_dir" else ""
