"""A run that joins a Ray cluster leaves out the sizes that ``cluster=cpu`` sets for a local one.

Symptom without it: ``ray.init`` ends with "When connecting to an existing cluster, num_cpus and num_gpus must not be
provided", so the run cannot be a Ray job. verl calls ``get_ppo_ray_runtime_env(config)`` right before it reads
``config.ray_kwargs.ray_init`` (``trainer/main_ppo.py:62``).

Can go when verl leaves the sizes out by itself.
"""

from __future__ import annotations

import functools
import logging
from types import ModuleType
from typing import Any

from pv_cpu.patches import tools

__all__ = ["MODULE", "SIZES", "install", "patch"]

MODULE = "verl.trainer.constants_ppo"
SIZES = ("num_cpus", "num_gpus", "object_store_memory")

logger = logging.getLogger("pv_cpu")


def joins(ray_init: Any) -> bool:
    """Whether ``ray.init`` would connect to a cluster: by its address, by RAY_ADDRESS, or to one on this host."""
    from ray._private import services

    find = tools.attribute(services, "canonicalize_bootstrap_address")
    return find(ray_init.get("address"), ray_init.get("_temp_dir")) is not None


def patch(constants: ModuleType) -> None:
    original = tools.attribute(constants, "get_ppo_ray_runtime_env")
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "config")

    @functools.wraps(original)
    def get_ppo_ray_runtime_env(config=None):
        ray_init = config.ray_kwargs.get("ray_init") if config is not None else None
        if ray_init and any(ray_init.get(name) is not None for name in SIZES) and joins(ray_init):
            left_out = {name: ray_init[name] for name in SIZES if ray_init.get(name) is not None}
            logger.warning(
                "this run joins a Ray cluster, which has its own sizes: %s have no effect", left_out
            )
            for name in left_out:
                ray_init[name] = None
        return original(config)

    tools.replace_everywhere(constants, "get_ppo_ray_runtime_env", tools.mark(get_ppo_ray_runtime_env))


def install() -> None:
    tools.after_import(MODULE, patch)
