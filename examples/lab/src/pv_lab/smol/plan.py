"""Run plan of the study: which runs there are, in which order, and the overrides of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path

from pv_lab.smol.data import SHARES, STARTS
from pv_rl.errors import ConfigError, DataError
from pv_rl.losses import resolve_mode
from pv_runs.run_folder import RunFolder

__all__ = [
    "FROM",
    "MODES",
    "Cell",
    "cells",
    "shared_overrides",
    "start_folder",
    "start_model",
    "start_overrides",
]

MODES = ("grpo", "dapo", "balanced", "ba")
STUDY = (
    "data.max_response_length=320",
    "data.dataloader_num_workers=0",
    "actor_rollout_ref.model.enable_gradient_checkpointing=false",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192",
    "actor_rollout_ref.actor.optim.lr=2e-5",
    "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
    "actor_rollout_ref.rollout.temperature=1.0",
    "trainer.save_freq=-1",
    "trainer.rollout_data_dir=null",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
)
"""What every run of the study has beside `run=small`."""
ONE_GPU = (
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.08",
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=4000000000",
    "actor_rollout_ref.rollout.enforce_eager=False",
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.compilation_config={mode:0,cudagraph_mode:FULL_DECODE_ONLY}",
)
"""Of several engines that share a GPU: a cache of a fixed size, and CUDA graphs without compilation."""
FROM = {"exact": None, "weak": "exact"}
"""Which start a start is trained from; None: the model that is given."""
OPTIONS = {
    "run": "pv-rl train",
    "cluster": "--cpu",
    "reward": "--veto",
    "data_dir": "--data and --share",
    "model_path": "--start",
    "seed": "--seeds and --first-seed",
    "actor_rollout_ref.actor.loss_agg_mode": "--mode",
    "trainer.total_training_steps": "--steps",
    "trainer.validation_data_dir": "--out",
    "hydra.run.dir": "--out",
}
"""Option of the driver that sets a key of the runs, by key: `--rl` may not set it."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One RL run."""

    start: str
    """`exact` or `weak`: what the checks of the supervised start were like."""
    share: int
    """Percent of the proofs to train on that are right."""
    mode: str
    """loss_agg_mode."""
    veto: bool
    """Whether rules veto degenerate traces (`verdict_fluency`) or the verdict alone counts."""
    seed: int
    changes: tuple[str, ...] = ()
    """Further overrides, KEY=VALUE, which the name tells apart."""

    @property
    def name(self) -> str:
        """Of its folder."""
        mode = re.sub("[:@]", "_", self.mode)
        name = f"{self.start}-p{self.share}-{mode}-{'veto' if self.veto else 'plain'}-seed-{self.seed}"
        return f"{name}-{_short(self.changes)}" if self.changes else name

    def overrides(self, data: Path, out: Path, steps: int, *, cpu: bool) -> list[str]:
        """Of `pv-rl train`, `run=small` included."""
        folder = out / "runs" / self.name
        return [
            "run=small",
            f"reward={'verdict_fluency' if self.veto else 'verdict'}",
            *(["cluster=cpu"] if cpu else []),
            f"data_dir={data / f'p{self.share}'}",
            f"model_path={start_model(out, self.start)}",
            f"seed={self.seed}",
            f"actor_rollout_ref.actor.loss_agg_mode={self.mode}",
            f"trainer.experiment_name={self.name}",
            f"trainer.total_training_steps={steps}",
            f"trainer.test_freq={max(1, steps // 2)}",
            f"trainer.validation_data_dir={folder / 'validation'}",
            f"hydra.run.dir={folder}",
            *shared_overrides(cpu=cpu),
            *self.changes,
        ]


def shared_overrides(*, cpu: bool) -> tuple[str, ...]:
    """What every run of the study sets, whichever cell it is."""
    return STUDY if cpu else (*STUDY, *ONE_GPU)


def cells(
    starts: Sequence[str],
    shares: Sequence[int],
    modes: Sequence[str],
    vetoes: Sequence[bool],
    seeds: range,
    changes: Sequence[str] = (),
) -> list[Cell]:
    """Every combination. Seeds come first within a setting of start, share and veto, so that a study that is cut has
    all weightings of the seeds that it reached.

    Raises:
        ConfigError: a start or a share that the data do not have, a weighting that is named twice, a change of what
            another option sets, or two changes of one key.
        LossModeError: a weighting that nobody knows.
    """
    for given, known in ((starts, tuple(STARTS)), (shares, SHARES)):
        if unknown := [str(one) for one in given if one not in known]:
            raise ConfigError(f"{', '.join(unknown)}: unknown; choose from {', '.join(map(str, known))}")
    specs: dict[str, str] = {}
    for mode in modes:
        if (spec := resolve_mode(mode).spec) in specs:
            raise ConfigError(
                f"--mode {specs[spec]} and --mode {mode} are the same weighting, {spec}; remove one"
            )
        specs[spec] = mode
    keys = [change.partition("=")[0].lstrip("+~") for change in changes]
    for key, change in zip(keys, changes, strict=True):
        if option := OPTIONS.get(key):
            raise ConfigError(f"--rl {change}: the study sets this key in each run; use {option}")
        if keys.count(key) > 1:
            raise ConfigError(f"--rl {change}: {key} is set more than once; set it once")
    starts, shares = tuple(dict.fromkeys(starts)), tuple(dict.fromkeys(shares))
    return [
        Cell(start=start, share=share, mode=mode, veto=veto, seed=seed, changes=tuple(sorted(changes)))
        for veto, start, share, seed, mode in product(vetoes, starts, shares, seeds, modes)
    ]


def _short(changes: Sequence[str]) -> str:
    """Suffix of a run's name: the last word of each key and its value, cut to 80 characters, and a hash of all."""
    words = "_".join(re.sub(r"^[^=]*\.", "", change) for change in changes)
    safe = re.sub(r"[^\w.]+", "_", words, flags=re.ASCII)
    return f"{safe[:80]}-{sha256(repr(changes).encode()).hexdigest()[:6]}"


def start_folder(out: Path, start: str) -> Path:
    """Folder of the supervised run."""
    return out / "starts" / start


def start_model(out: Path, start: str) -> Path:
    """Folder of the model that it ended with.

    Raises:
        DataError: it has not ended.
    """
    checkpoints = RunFolder(start_folder(out, start)).checkpoints
    try:
        step = int((checkpoints / "latest_checkpointed_iteration.txt").read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{checkpoints} has no checkpoint of the start {start!r}: {error}") from error
    return checkpoints / f"global_step_{step}" / "huggingface"


def start_overrides(start: str, model: Path, data: Path, out: Path, steps: int, *, cpu: bool) -> list[str]:
    """Of `pv-rl train` for a supervised start of `steps` steps, `run=sft_small` included."""
    before = FROM[start]
    return [
        "run=sft_small",
        *(["cluster=cpu"] if cpu else []),
        f"data_dir={data / start}",
        f"model_path={model if before is None else start_model(out, before)}",
        f"trainer.total_training_steps={steps}",
        "checkpoint.save_contents=[hf_model]",
        "checkpoint.load_contents=[]",
        f"hydra.run.dir={start_folder(out, start)}",
    ]
