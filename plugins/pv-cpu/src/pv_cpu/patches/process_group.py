"""Process groups use the backend "cpu:gloo".

Symptom without it: ``ValueError: Custom backend string argument is invalid`` (or "duplicate
device") when a worker starts, because ``utils/distributed.py:89`` builds
``f"cpu:gloo,{device}:{backend}"``, which on a CPU names the device "cpu" twice.

Can go when verl leaves the second half out where the device is "cpu".
"""

from __future__ import annotations

import functools
from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.utils.distributed"
NAME = "initialize_global_process_group_ray"


def patch(distributed: ModuleType) -> None:
    original = tools.attribute(distributed, NAME)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "timeout_second", "backend")

    @functools.wraps(original)
    def initialize_global_process_group_ray(timeout_second=None, backend=None):
        return original(timeout_second=timeout_second, backend=backend or "cpu:gloo")

    tools.replace_everywhere(distributed, NAME, tools.mark(initialize_global_process_group_ray))


def install() -> None:
    tools.after_import(MODULE, patch)
