"""Checks of a supervised run (verl's SFT trainer), in place of those of a run with rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pv_judge.pages.text import plural
from pv_judge.rowfiles import open_rows
from pv_rl.errors import ConfigError, DataError, PvRlError
from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import right, wrong
from pv_runs.preflight.machine import Machine

__all__ = ["check_conversations", "check_supervised", "is_supervised"]

MODULE = "verl.trainer.sft_trainer"
BUILT = ("engine", "optim", "checkpoint")
"""Parts that verl turns into dataclasses at the start. Not `model`, which reads the model."""
LOOKED_AT = 1000
"""Rows of a file that are read."""


def is_supervised(config: DictConfig) -> bool:
    """Whether the run is one of verl's SFT trainer."""
    return value(config, "launch.module") == MODULE


def check_supervised(config: DictConfig) -> Iterator[Finding]:
    """Build verl's config objects, and refuse what one process cannot do.

    Raises:
        ConfigError: data_dir is missing, several GPUs, or what verl reports.
    """
    if OmegaConf.is_missing(config, "data_dir"):
        raise ConfigError("data_dir is missing: set data_dir=... to a folder with train.parquet")
    gpus = (value(config, "trainer.nnodes"), value(config, "trainer.n_gpus_per_node"))
    if gpus != (1, 1):
        raise ConfigError(
            f"trainer.nnodes and trainer.n_gpus_per_node are {gpus[0]} and {gpus[1]}, and pv-rl train starts one "
            f"process of {MODULE}. Set both to 1 (cluster=gpu1), or use torchrun: docs/guides/recipes.md"
        )
    from verl.utils.config import omega_conf_to_dataclass

    try:
        for part in BUILT:
            omega_conf_to_dataclass(OmegaConf.select(config, part))
        OmegaConf.resolve(config.copy())
    except Exception as error:
        raise ConfigError(
            f"verl refuses this config: {type(error).__name__}: {' '.join(str(error).split())}"
        ) from error
    yield right("verl's SFT trainer accepts the config")


def check_conversations(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether the first rows of each data file hold a conversation that ends with an answer."""
    column = str(value(config, "data.messages_key"))
    for key in ("data.train_files", "data.val_files"):
        given: Any = value(config, key)
        for name in [given] if isinstance(given, str) else given or ():
            path = machine.cwd / str(name)
            try:
                file = open_rows(path, suffixes=(".parquet",))
                if column not in file.kinds:
                    raise DataError(f"{path} has no column {column}; it has {', '.join(file.kinds)}")
                seen = [row.values[column] for row in islice(file.rows([column]), LOOKED_AT)]
            except (PvRlError, OSError) as error:
                yield wrong(f"{key}: {error}", "correct it, or data_dir=..., which names the folder")
                continue
            bad = next((number for number, row in enumerate(seen, 1) if not _answered(row)), None)
            batch: Any = value(config, "data.train_batch_size")
            if bad is not None:
                text = f"{key}: row {bad} of {path} has no conversation that ends with an assistant message"
                yield wrong(text, f"write a list of role and content in the column {column}")
            elif "train" in key and len(seen) < min(batch, LOOKED_AT):
                yield wrong(
                    f"{key} has {plural(len(seen), 'row')}, and a batch takes {batch}",
                    "add rows, or lower data.train_batch_size",
                )
            else:
                yield right(f"{key}: {path} has conversations in {column}")


def _answered(messages: object) -> bool:
    """Whether this is a list of messages, of which the last is the assistant's."""
    if not isinstance(messages, list) or not messages:
        return False
    texts = all(isinstance(one, Mapping) and isinstance(one.get("content"), str) for one in messages)
    return texts and messages[-1].get("role") == "assistant"
