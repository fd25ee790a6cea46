"""Checks of a run's reward in the driver, before a worker loads a model: name, options, and the labels of the data.

A check that this process cannot make is left out: the run then stops later, and no run is refused that would work.
"""

from __future__ import annotations

import glob
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, ListConfig
from omegaconf.errors import OmegaConfBaseException

from pv_rl.errors import ConfigError, DataError, PvRlError
from pv_rl.plugins import REWARDS
from pv_rl.recipes.choices import NAMED, value
from pv_rl.rewards import build
from pv_rl.rewards.base import LABELS, LabelKind
from pv_rl.rewards.named import plain
from pv_rl.step_state import StepState
from pv_rl.trainer_hooks import names_our_reward

__all__ = ["check", "check_abstention", "check_labels", "check_reward"]

logger = logging.getLogger("pv_rl")

FUNCTION = "reward.custom_reward_function"
MANAGERS = ("naive", "dapo")
"""verl's reward managers that hand on what a reward function returns."""
OWN_CODE = (
    "data.custom_cls.path",
    "data.datagen.path",
    "actor_rollout_ref.rollout.agent.agent_loop_manager_class",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path",
)
"""Settings that name code of the user's, from which a row may get another label than the file has."""
BUDGET_S = 4.0
"""Longest time for the labels of one setting."""
LABEL = ("reward_model", "ground_truth")
"""The column, and its field."""


def check(state: StepState) -> None:
    """Hook: check everything that can be known of the reward before a worker starts."""
    check_abstention(state)
    check_labels(state.config, check_reward(state.config))


def check_abstention(state: StepState) -> None:
    """Hook: refuse a reward manager, a reward model and a trainer of verl with which no row can abstain.

    Also where the reward workers start: `fully_async_policy` does not call verl's `validate_config`.
    """
    config = state.config
    if not names_our_reward(config):
        return
    manager, model = value(config, "reward.reward_manager"), value(config, "reward.reward_model")
    if isinstance(manager, Mapping) and (manager["source"] != "register" or manager["name"] not in MANAGERS):
        raise ConfigError(
            f"reward.reward_manager.name={manager['name']}: with a reward of pv-rl it is one of {', '.join(MANAGERS)}. "
            "verl's others invent a reward where there is none (rate_limited gives 0). Set request limits on the judge"
        )
    if isinstance(model, Mapping) and model["enable"] and not model["enable_resource_pool"]:
        raise ConfigError(
            "reward.reward_model.enable_resource_pool=false: verl calls a reward function without its row where the "
            "reward model is colocated; set it to true, or serve the model outside the run"
        )
    if "async_training" in config:
        raise ConfigError(
            "verl's fully_async_policy trains in another process than it rewards in, where no row could abstain: use "
            "trainer.v1.trainer_mode=separate_async, or a reward function of your own"
        )


def check_reward(config: DictConfig, *, build_all: bool = False) -> LabelKind:
    """Check the name and the options of the reward, as `pv_rl.rewards.build.check_reward` does.

    It needs no key and starts no judge. Options that cannot be resolved are left to the worker, whose environment may
    have the variable, and so is what is wrong here if Ray gives the workers an environment of their own.

    Args:
        config: verl's.
        build_all: build also a reward that is not `RewardEntry.cheap`.

    Returns:
        How the reward reads a label; `any` where that is not known, or the reward is not one of pv-rl.

    Raises:
        ConfigError: the reward or an option of it does not exist, or has a wrong value; or a package is missing.
    """
    function = value(config, FUNCTION)
    if not isinstance(function, Mapping) or not names_our_reward(config):
        return "any"
    if (path := function["path"]) != NAMED:
        if not _is_module(path.removeprefix("pkg://")):
            raise ConfigError(
                f"{FUNCTION}.path={path}: there is no such module. Rewards by name are in {NAMED}"
            )
        return "any"
    name: Any = None
    try:
        name, options = function.get("name"), function.get("reward_kwargs") or {}
        options = plain(options) if isinstance(options, Mapping) else options
        return (
            build.build_reward(name, options).label_kind if build_all else build.check_reward(name, options)
        )
    except OmegaConfBaseException:
        return "any"
    except PvRlError as error:
        if not build_all and _is_elsewhere(config):
            return "any"
        known = isinstance(name, str) and name in REWARDS.entries()
        raise type(error)(f"{FUNCTION}.{'reward_kwargs' if known else f'name={name}'}: {error}") from error


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what is before the last point is not a package
        return False


def check_labels(config: DictConfig, kind: LabelKind) -> None:
    """Refuse data whose labels the reward cannot read, for most rows: such a run would end after its first step.

    It reads the labels of local Parquet files, for `BUDGET_S` seconds, and takes those that it did not read for right.
    Fewer wrong labels are a warning, since their rows abstain.

    Args:
        config: verl's.
        kind: how the reward reads a label.

    Raises:
        DataError: most labels of `data.train_files` or of `data.val_files` cannot be read.
    """
    try:
        own = next((key for key in OWN_CODE if value(config, key)), "")
        if own or _is_elsewhere(config):
            logger.info("the labels are not checked: %s", own or "Ray's workers may have other files")
            return
        used = _files_in_use(config)
    except (ConfigError, OmegaConfBaseException):  # a value that cannot be resolved here
        return
    for key, (files, most) in used.items():
        total, wrong, first = 0, 0, ""
        for fault in _read(files, kind, most):
            total += 1
            if fault:
                wrong, first = wrong + 1, first or fault
        if not wrong:
            continue
        total = max(total, _rows(files, most))
        text = f"{key}: the reward cannot read the labels of {wrong:,} of {total:,} rows. The first: {first}"
        if 2 * wrong > total:
            raise DataError(text)
        logger.warning("%s Rows with such a label get no reward.", text)


def _is_elsewhere(config: DictConfig) -> bool:
    """Whether Ray's workers may have other files or packages: by Ray's client, or in an environment of their own."""
    ray: Any = sys.modules.get("ray")
    if ray is not None and ray.is_initialized() and ray.get_runtime_context().get_actor_id():
        return False  # this is an actor, in whose process most of verl's trainers check their config
    try:
        address = f"{value(config, 'ray_kwargs.ray_init.address')} {os.environ.get('RAY_ADDRESS')}"
        environment: Any = value(config, "ray_kwargs.ray_init.runtime_env") or {}
        if not isinstance(environment, Mapping):
            return True
        set_here = [key for key in environment if environment[key]]
        own = [key for key in set_here if key != "env_vars" or "PYTHONPATH" in environment[key]]
    except (ConfigError, OmegaConfBaseException):  # a value that cannot be resolved here
        return True
    return "://" in address or bool(own)


def _files_in_use(config: DictConfig) -> dict[str, tuple[list[str], int | None]]:
    """By setting, its local Parquet files and how many of their rows verl takes; without those that no step reads."""
    frequency: Any = value(config, "trainer.test_freq")
    validates = value(config, "trainer.val_before_train") is not False or (frequency or 0) > 0
    found = {}
    for split, needed in (("train", not value(config, "trainer.val_only")), ("val", validates)):
        key = f"data.{split}_files"
        given: Any = value(config, key) or ()
        names = [
            os.path.expanduser(str(one))
            for one in (given if isinstance(given, ListConfig | tuple) else [given])
        ]
        paths = [path for name in names for path in (sorted(glob.glob(name)) if "*" in name else [name])]
        others = [path for path in paths if not path.endswith(".parquet") or not os.path.isfile(path)]
        if others:
            logger.info("the labels of %s are not checked: %s is not a local Parquet file", key, others[0])
        elif needed:
            most: Any = value(config, f"data.{split}_max_samples")
            first = isinstance(most, int) and most > 0 and not value(config, "data.shuffle")
            found[key] = (paths, most if first else None)
    return found


def _read(files: Sequence[str], kind: LabelKind, most: int | None) -> Iterator[str]:
    """For each row what is wrong with its label, or ''. A file that cannot be read is left to verl."""
    deadline, count = time.monotonic() + BUDGET_S, 0
    for path in files:
        try:
            for number, label in _labels(path):
                if count == most or time.monotonic() > deadline:
                    return
                count += 1
                fault = ""
                try:
                    if isinstance(label, DataError):
                        raise label
                    LABELS[kind](label)
                except DataError as error:
                    fault = f"row {number} of {path}: {error}"
                yield fault
        except Exception as error:  # noqa: BLE001 - pyarrow is missing or cannot read it; verl reads it next
            logger.info("the labels of %s are not checked: %s", path, error)


def _rows(files: Sequence[str], most: int | None) -> int:
    """How many rows verl takes, those included that `_read` leaves out; 0 where a file cannot be read."""
    import pyarrow.parquet as pq

    try:
        found = sum(pq.read_metadata(path).num_rows for path in files)
    except Exception:  # noqa: BLE001 - as in `_read`
        return 0
    return found if most is None else min(found, most)


def _labels(path: str) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and label of each row; a `DataError` in place of a label that the file has no column for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column, field = LABEL
    with pq.ParquetFile(path) as file:
        schema, missing = file.schema_arrow, ""
        if column not in schema.names:
            missing = f"there is no column {column}; the file has {schema.names!r:.400}"
        elif not pa.types.is_struct(kind := schema.field(column).type):
            raise TypeError(f"{column} has the type {kind}")  # it may be one that `datasets` decodes
        elif kind.get_field_index(field) < 0:
            missing = f"{column} has no {field}; it has {[one.name for one in kind]!r:.400}"
        elif isinstance(kind.field(field).type, pa.BaseExtensionType):
            raise TypeError(f"{column}.{field} has the type {kind.field(field).type}")  # of JSON, for example
        if missing:
            fault = DataError(f"{missing}. verl gives the reward {column}.{field} as the label.")
            yield from ((number, fault) for number in range(1, file.metadata.num_rows + 1))
            return
        number = 0
        for batch in file.iter_batches(columns=[f"{column}.{field}"], batch_size=8192):
            for label in batch.column(0).field(0).to_pylist():
                number += 1
                yield number, label
