"""Values that verl accepts when it starts and refuses minutes later: numbers, names of its registries, a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from omegaconf import DictConfig

from pv_rl.hookspecs import Finding
from pv_rl.plugins import nearest
from pv_rl.recipes.choices import value
from pv_runs.preflight.checkpoint import check_checkpoint
from pv_runs.preflight.findings import note, wrong
from pv_runs.preflight.machine import Machine
from pv_runs.preflight.packages import ENGINES

__all__ = ["check_values"]

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
VOTES = f"{ROLLOUT}.val_kwargs.n"
KL = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "full")
BACKENDS = ("naive", "nccl", "nixl", "mooncake", "kimi_ckpt_engine", "delta_sharded", "pv_cpu_file")
WHOLE = {
    "data.train_batch_size": 1,
    "data.max_prompt_length": 1,
    "data.max_response_length": 1,
    "data.dataloader_num_workers": 0,
    f"{ACTOR}.ppo_mini_batch_size": 1,
    f"{ACTOR}.ppo_epochs": 1,
    f"{ROLLOUT}.n": 1,
    f"{ROLLOUT}.tensor_model_parallel_size": 1,
    "trainer.total_epochs": 1,
    "trainer.total_training_steps": 1,
    "trainer.save_freq": None,
    "trainer.test_freq": None,
    "seed": None,
}
"""The smallest value of each whole number; null is left to verl."""
NUMBERS = (
    f"{ACTOR}.optim.lr",
    f"{ACTOR}.kl_loss_coef",
    f"{ACTOR}.clip_ratio_low",
    f"{ACTOR}.clip_ratio_high",
)
"""Not negative."""
NAMES = {
    "data.truncation": ("left", "right", "middle", "error"),
    f"{ACTOR}.kl_loss_type": tuple(f"{name}{sign}" for name in KL for sign in ("", "+")),
    f"{ROLLOUT}.checkpoint_engine.backend": BACKENDS,
    "trainer.device": ("cuda", "npu", "cpu"),
}
"""Names that verl looks up late. Others may come with a plugin."""
PATHS = (
    "run_dir",
    "trainer.default_local_dir",
    "trainer.rollout_data_dir",
    "trainer.validation_data_dir",
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.model.tokenizer_path",
    "reward.custom_reward_function.path",
    "data.custom_cls.path",
)
"""Files and folders in whose name verl does not replace ~."""


def check_values(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong; nothing where all is right."""
    for key, least in WHOLE.items():
        given = value(config, key)
        if given is not None and (not isinstance(given, int) or (least is not None and given < least)):
            expected = "a whole number" + (f", {least} or more" if least is not None else "")
            yield wrong(f"{key} is {given!r}; it has to be {expected}", f"set {key}")
    for key in NUMBERS:
        given = value(config, key)
        if given is not None and (not isinstance(given, int | float) or given < 0):
            yield wrong(f"{key} is {given!r}; it has to be a number, 0 or more", f"set {key}")
    for key in PATHS:
        if str(given := value(config, key)).startswith("~"):
            yield wrong(f"{key} is {given}, and verl does not replace ~ by a folder", "write it in full")
    yield from _names(config)
    if isinstance(votes := value(config, VOTES), int) and votes > 1:
        yield note(
            f"{VOTES} is {votes}: for each prompt of a validation verl resamples each number of its reward 1,000 "
            "times: 6 ms at n=2, 17 ms at n=8. verdict_fluency has 27 numbers: 0.2 to 0.5 s a prompt",
            "set it to 1, and repeat the rows of data.val_files",
        )
    if "file" not in str(value(config, "trainer.logger")):
        yield note(
            "trainer.logger has no file: pv-rl report and watch read the metrics of verl's file logger",
            "add file to trainer.logger",
        )
    yield from check_checkpoint(config, machine)


def _names(config: DictConfig) -> Iterator[Finding]:
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

    registries: dict[str, Iterable[Any]] = {
        "algorithm.adv_estimator": ADV_ESTIMATOR_REGISTRY,
        f"{ACTOR}.policy_loss.loss_mode": POLICY_LOSS_REGISTRY,
        f"{ROLLOUT}.name": (*ENGINES, "hf", "pv_cpu"),
        **NAMES,
    }
    for key, known in registries.items():
        given, names = str(value(config, key)), sorted(str(getattr(one, "value", one)) for one in known)
        if given in names:
            continue
        text, like = f"{key} is {given}, which is none of {', '.join(names)}", nearest(given, names)
        if like:
            yield wrong(f"{text}.{like}", f"correct {key}")
        else:
            yield note(text, "a plugin of yours has to register it")
