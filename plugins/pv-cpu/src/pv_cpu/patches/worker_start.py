"""Ray's workers are forks of a process that has imported torch and verl.

Symptom without it: nothing is wrong, but each of the nine processes of a run imports torch and verl for 6 s of
processor time, and on two cores most of the start is that. verl calls ``get_ppo_ray_runtime_env(config)`` right before
it reads ``ray_kwargs.ray_init`` (``trainer/main_ppo.py:62``), whose ``py_executable`` is set to ``pv_cpu.forks``.

Left out if the run joins a Ray cluster, if the config sets something in ``ray_init.runtime_env``, or if
PYTHONHASHSEED is set, which an interpreter reads when it starts.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from omegaconf import OmegaConf

from pv_cpu import forks
from pv_cpu.patches import tools
from pv_cpu.patches.ray_cluster import joins

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.trainer.constants_ppo"
NAME = "get_ppo_ray_runtime_env"
SETTING = "ray_kwargs.ray_init.runtime_env.py_executable"


def starts_plainly(config: Any) -> bool:
    """Whether the run starts a Ray of its own and asks for nothing particular in its workers."""
    ray_init = config.ray_kwargs.get("ray_init") or {}
    asked = [value for value in (ray_init.get("runtime_env") or {}).values() if value]
    return not asked and not joins(ray_init)


def patch(constants: ModuleType) -> None:
    original = tools.attribute(constants, NAME)
    if getattr(original, "_pv_cpu_fork", False):
        return

    tools.require_parameters(original, "config")

    @functools.wraps(original)
    def get_ppo_ray_runtime_env(config=None):
        runtime_env = original(config)
        if config is not None and "PYTHONHASHSEED" not in runtime_env["env_vars"] and starts_plainly(config):
            python = forks.executable()
            OmegaConf.update(config, SETTING, python, force_add=True)
        return runtime_env

    get_ppo_ray_runtime_env._pv_cpu_fork = True  # type: ignore[attr-defined]
    tools.replace_everywhere(constants, NAME, get_ppo_ray_runtime_env)


def install() -> None:
    """Start the server now in a process that is a trainer of verl, so that it imports beside the driver."""
    if any(one.startswith("verl.") and one.endswith(".main_ppo") for one in sys.orig_argv[1:4]):
        forks.start()
    tools.after_import(MODULE, patch)
