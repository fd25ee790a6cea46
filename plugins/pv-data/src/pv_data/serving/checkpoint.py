"""Checkpoint on disk: Hugging Face's format is served as it is, verl's is converted once.

verl converts its own (`python -m verl.model_merger`), in a process of its own; this package imports neither verl nor
torch. The converted model is put beside the checkpoint, whole or not at all, and is used again until the checkpoint
changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from pv_judge.files import load_json
from pv_judge.processes import interruptible, process_tree
from pv_rl.errors import DataError, SetupError

__all__ = ["fingerprint", "is_model", "is_verl", "model_folder"]

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
MERGED = "actor_merged"
"""Name of the converted model's folder, in `global_step_N`."""
MARK = "pv_data_merged.json"
BLOCKS, BLOCK = 64, 65_536
"""A large file is told apart by its size and so many blocks of so many bytes, spread over it."""


def is_model(folder: Path) -> bool:
    """Whether it has a config and weights, in Hugging Face's format."""
    return (folder / "config.json").is_file() and any(_files(folder, WEIGHTS))


def is_verl(folder: Path) -> bool:
    """Whether it is a `global_step_N` of verl, or an `actor` in one."""
    return _actor(folder) is not None


def model_folder(folder: Path, log: Path) -> Path:
    """The folder to serve.

    Args:
        folder: a model, a `global_step_N` of verl or its `actor`.
        log: what the conversion writes.

    Raises:
        DataError: it is neither, or a checkpoint that cannot be converted here.
        SetupError: verl is missing, or its conversion failed.
    """
    if is_model(folder):
        return folder.resolve()
    actor = _actor(folder)
    if actor is None:
        raise DataError(
            f"{folder} holds no model: neither config.json with .safetensors, nor a verl checkpoint (global_step_N, or "
            "its actor)"
        )
    own = actor / "huggingface"
    if is_model(own):
        return own.resolve()
    return _merged(actor.resolve(), log)


def fingerprint(folder: Path) -> str:
    """16 hex digits of a model's weights, config and tokenizer, so that a cache does not take one for another."""
    digest = hashlib.sha256()
    for path in sorted(_files(folder, (*WEIGHTS, "*.json", "*.jinja", "*.model"))):
        if path.name == MARK:  # says when a checkpoint was written, not what it holds
            continue
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            step = max(BLOCK, size // BLOCKS)
            for at in range(0, size, step):
                file.seek(at)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:16]


def _actor(folder: Path) -> Path | None:
    for place in (folder, folder / "actor"):
        if _backend(place) is not None:
            return place
    return None


def _backend(actor: Path) -> str | None:
    if any(_files(actor, ("model_world_size_*_rank_*.pt",))):
        return "fsdp"
    return "megatron" if (actor / "model" / "dist_ckpt").is_dir() else None


def _merged(actor: Path, log: Path) -> Path:
    target = actor.with_name(f"{actor.name}_merged" if actor.name != "actor" else MERGED)
    state = _state(actor)
    if is_model(target) and _mark(target) == state:
        return target
    if (actor / "lora_train_meta.json").exists():
        raise DataError(f"{actor} is a LoRA checkpoint; merge it with its base model, and give that folder")
    if importlib.util.find_spec("verl") is None:
        raise SetupError(
            f"{actor} is a checkpoint of verl, which converts it, and verl cannot be found: run this where verl is "
            "installed, or convert it there by python -m verl.model_merger merge"
        )
    made = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _merge(actor, made, log)
        (made / MARK).write_text(json.dumps(state) + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        os.replace(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def _merge(actor: Path, made: Path, log: Path) -> None:
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", _backend(actor) or "fsdp"]
    command += ["--local_dir", str(actor), "--target_dir", str(made)]
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    with interruptible(), process_tree(command, env=env, cwd=log.parent, log=log) as child:
        code = child.wait()
    if code != 0 or not is_model(made):
        raise SetupError(f"verl could not convert {actor} (it ended with {code}); its log is {log}")


def _state(actor: Path) -> dict[str, list[int]]:
    """What the checkpoint's files are now: a run that starts again writes others of the same names."""
    files = _files(actor, ("*.pt", "model/**/*", "huggingface/*"))
    return {
        str(path.relative_to(actor)): [path.stat().st_size, path.stat().st_mtime_ns]
        for path in sorted(files)
        if path.is_file()
    }


def _mark(target: Path) -> object:
    try:
        return load_json((target / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _files(folder: Path, patterns: Iterable[str]) -> Iterable[Path]:
    return (path for pattern in patterns for path in folder.glob(pattern))
