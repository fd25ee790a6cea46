"""Process groups use the backend "cpu:gloo".

Symptom without it: ``ValueError: Custom backend string argument is invalid`` (or "duplicate
device") when a worker or the SFT trainer starts, because ``utils/distributed.py:61`` and ``:89`` build
``f"cpu:gloo,{device}:{backend}"``, which on a CPU names the device "cpu" twice.

Can go when verl leaves the second half out where the device is "cpu".
"""

from __future__ import annotations

import functools
import os
from datetime import timedelta
from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "SPMD", "install", "patch"]

MODULE = "verl.utils.distributed"
NAME = "initialize_global_process_group_ray"
SPMD = "initialize_global_process_group"
"""Of trainers without Ray, in which torchrun sets the ranks."""


def patch(distributed: ModuleType) -> None:
    _patch_ray(distributed)
    _patch_spmd(distributed)


def _patch_ray(distributed: ModuleType) -> None:
    original = tools.attribute(distributed, NAME)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "timeout_second", "backend")

    @functools.wraps(original)
    def initialize_global_process_group_ray(timeout_second=None, backend=None):
        return original(timeout_second=timeout_second, backend=backend or "cpu:gloo")

    tools.replace_everywhere(distributed, NAME, tools.mark(initialize_global_process_group_ray))


def _patch_spmd(distributed: ModuleType) -> None:
    original = tools.attribute(distributed, SPMD)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "timeout_second")

    @functools.wraps(original)
    def initialize_global_process_group(timeout_second=36000):
        import torch.distributed

        torch.distributed.init_process_group(
            backend="cpu:gloo",
            timeout=timedelta(seconds=timeout_second),
            init_method=os.environ.get("DIST_INIT_METHOD"),
        )
        return tuple(int(os.environ[name]) for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE"))

    tools.replace_everywhere(distributed, SPMD, tools.mark(initialize_global_process_group))


def install() -> None:
    tools.after_import(MODULE, patch)
