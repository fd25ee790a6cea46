"""The process group of a trainer without Ray, whose ranks torchrun sets, uses the backend "cpu:gloo".

Symptom without it: ``ValueError: Duplicate device type cpu in backend string`` when the SFT trainer
starts, because ``utils/distributed.py:61`` builds ``f"cpu:gloo,{device}:{backend}"``, which on a CPU
names the device "cpu" twice.

Can go when verl leaves the second half out where the device is "cpu".
"""

from __future__ import annotations

import functools
import os
from datetime import timedelta
from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.utils.distributed"
NAME = "initialize_global_process_group"


def patch(distributed: ModuleType) -> None:
    original = tools.attribute(distributed, NAME)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "timeout_second")

    @functools.wraps(original)
    def initialize_global_process_group(timeout_second=36000):
        from torch.distributed import init_process_group

        method = os.environ.get("DIST_INIT_METHOD")
        init_process_group(backend="cpu:gloo", timeout=timedelta(seconds=timeout_second), init_method=method)
        return tuple(int(os.environ[name]) for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE"))

    tools.replace_everywhere(distributed, NAME, tools.mark(initialize_global_process_group))


def install() -> None:
    tools.after_import(MODULE, patch)
