"""Checkpoint from which the run would continue: whether it is there, and was written by as many ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig

from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import wrong
from pv_runs.preflight.machine import Machine

__all__ = ["check_checkpoint", "checkpoint_to_load"]

RESUME = ("auto", "disable", "resume_path")
CHECKPOINT = re.compile(r"global_step_(\d+)/*$")
RANKS = re.compile(r"model_world_size_(\d+)_rank_\d+\.pt")


def checkpoint_to_load(config: DictConfig, cwd: Path) -> tuple[Path | None, int | None]:
    """The checkpoint that verl will load, and the first step after it; None: there is none, the step is not known.

    Args:
        config: composed.
        cwd: relative paths of the config are from there.
    """
    mode, given = value(config, "trainer.resume_mode") or "auto", value(config, "trainer.resume_from_path")
    if mode == "disable":
        return None, 1
    if mode == "resume_path":
        match = CHECKPOINT.search(str(given))
        return (cwd / str(given), int(match[1]) + 1) if match else (None, None)
    checkpoints = cwd / str(value(config, "trainer.default_local_dir"))
    try:
        step = int((checkpoints / "latest_checkpointed_iteration.txt").read_text())
    except FileNotFoundError:
        return None, 1
    except (OSError, ValueError):
        return None, None
    return checkpoints / f"global_step_{step}", step + 1


def check_checkpoint(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong; nothing where all is right.

    verl starts from the first step without a word where the newest checkpoint is not there, and its FSDP loads a
    checkpoint on as many ranks as wrote it (utils/checkpoint/fsdp_checkpoint_manager.py:213).
    """
    mode = value(config, "trainer.resume_mode")
    if mode not in RESUME:
        yield wrong(f"trainer.resume_mode is {mode}, which is none of {', '.join(RESUME)}", "set it to auto")
        return
    path, step = checkpoint_to_load(config, machine.cwd)
    if mode == "resume_path" and (path is None or not path.is_dir()):
        yield wrong(
            f"trainer.resume_from_path is {value(config, 'trainer.resume_from_path')}, and there is no such checkpoint",
            "set it to a folder .../global_step_STEP, or trainer.resume_mode=auto",
        )
    elif path is not None and not path.is_dir():
        yield wrong(
            f"{path}, the newest checkpoint by latest_checkpointed_iteration.txt, is not there: verl would start again "
            "from the first step",
            "write the number of a checkpoint that is there into that file, or delete it to start again",
        )
    elif step is None:
        tracker = "latest_checkpointed_iteration.txt"
        yield wrong(
            f"{tracker} in {value(config, 'trainer.default_local_dir')} is no number, and verl cannot read it",
            "write the number of the newest checkpoint into it",
        )
    if path is not None and (path / "actor").is_dir():
        yield from _ranks(config, path)


def _ranks(config: DictConfig, path: Path) -> Iterator[Finding]:
    names = (RANKS.fullmatch(one.name) for one in (path / "actor").iterdir())
    wrote = {int(match[1]) for match in names if match}
    nodes, each = value(config, "trainer.nnodes"), value(config, "trainer.n_gpus_per_node")
    if not isinstance(nodes, int) or not isinstance(each, int):
        return
    if wrote and nodes * each not in wrote:
        yield wrong(
            f"{path} was written by {max(wrote)} ranks; trainer.nnodes * trainer.n_gpus_per_node is {nodes * each}, "
            "and verl's FSDP loads a checkpoint on as many ranks as wrote it",
            f"resume on {max(wrote)}, or merge it (python -m verl.model_merger) and start a new run from that",
        )
