"""A local model's options as the command line of vLLM's server, and the GPUs of this machine that it gets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pv_data.asking.local import Local
from pv_data.serving.folder import context_of

__all__ = ["arguments_of", "choose_gpus", "visible_gpus"]


def arguments_of(local: Local, folder: Path) -> list[str]:
    """`{enforce_eager: true}` is `--enforce-eager`."""
    options: dict[str, Any] = {
        **local.engine,
        "max_model_len": context_of(folder, local.engine),
        "tensor_parallel_size": local.gpus,
        "data_parallel_size": local.replicas,
    }
    found = []
    for name, value in options.items():
        dashed = name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"--{dashed}" if value else f"--no-{dashed}")
        elif value is not None:
            found += [f"--{dashed}", json.dumps(value) if isinstance(value, dict | list) else str(value)]
    return found


def choose_gpus(local: Local, visible: list[str], taken: Collection[str]) -> list[str]:
    """Of those that no other model has; none where they do not suffice: then models share what there is."""
    free, needed = [one for one in visible if one not in taken], local.gpus * local.replicas
    return free[:needed] if len(free) >= needed else []


def visible_gpus() -> list[str]:
    """By the names that CUDA_VISIBLE_DEVICES has for them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one.strip() for one in named.split(",") if one.strip()]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    gpus = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(gpus))]
