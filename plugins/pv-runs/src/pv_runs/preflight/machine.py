"""Machine: what a run finds where it starts, read once: environment, packages, CPUs and GPUs of each node of Ray."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pv_judge.files import load_json
from pv_rl.recipes.choices import value

__all__ = ["Machine", "Node", "environment_of", "installed", "listens", "ray_folder", "this_machine"]

RAY_INIT = "ray_kwargs.ray_init"
ASK = """
import json, sys
from ray._raylet import GcsClient
from ray.autoscaler.v2.sdk import get_cluster_resource_state
nodes = [one for one in get_cluster_resource_state(GcsClient(sys.argv[1])).node_states if one.status != 2]  # dead
free = [dict(one.available_resources) for one in nodes]
print(json.dumps([(one.get("CPU", 0), one.get("GPU", 0) or one.get("NPU", 0)) for one in free]))
"""
"""Asks the head node of a cluster. In a process of its own: Ray ends the process that asks what is no head node."""
ASK_S, CONNECT_S = 6, 2


@dataclass(frozen=True, kw_only=True)
class Node:
    """What is free on one node of Ray."""

    cpus: float
    gpus: float


def installed(module: str) -> bool:
    """Whether a module can be found, without importing it (but its parents)."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a run finds where it starts."""

    cwd: Path
    """Relative paths of the config are from there."""
    environment: Mapping[str, str]
    """Of verl: that of this process, and `launch.env`."""
    nodes: tuple[Node, ...] | None
    """Empty: no head node listens at the cluster's address. None: the cluster could not be asked."""
    cluster: str = ""
    """Address of the Ray cluster that the run joins; empty where Ray starts on this machine."""
    has: Callable[[str], bool] = installed
    """Whether a module is installed."""


def environment_of(config: DictConfig) -> dict[str, str]:
    """The environment that `pv-rl train` gives to verl."""
    added = OmegaConf.select(config, "launch.env") or {}
    return {**os.environ, **{str(name): str(one) for name, one in added.items()}}


def this_machine(config: DictConfig, cwd: Path) -> Machine:
    """Look at this machine, or at the Ray cluster that the run joins.

    Raises:
        ConfigError: a value of `ray_kwargs` or `launch.env` cannot be read.
    """
    environment = environment_of(config)
    address = _address(config, environment)
    if address:
        nodes = _ask(address)
    else:
        cpus, gpus = (value(config, f"{RAY_INIT}.{name}") for name in ("num_cpus", "num_gpus"))
        logical = isinstance(gpus, int) and environment.get("VERL_PLATFORM", "").strip().lower() == "cpu"
        devices = gpus if logical else _devices()
        nodes = (
            Node(
                cpus=cpus if isinstance(cpus, int) else os.cpu_count() or 1,
                gpus=min(gpus, devices) if isinstance(gpus, int) else devices,
            ),
        )
    return Machine(cwd=cwd, environment=environment, nodes=nodes, cluster=address)


def _address(config: DictConfig, environment: Mapping[str, str]) -> str:
    """The cluster that `ray.init` joins: by its argument, by RAY_ADDRESS, else the one that `ray start` began here."""
    given = str(value(config, f"{RAY_INIT}.address") or environment.get("RAY_ADDRESS") or "auto")
    if given != "auto":
        return "" if given == "local" else given
    try:
        return (ray_folder(config, environment) / "ray_current_cluster").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def ray_folder(config: DictConfig, environment: Mapping[str, str]) -> Path:
    """Where Ray keeps sockets, logs and spilled objects (ray/_common/utils.py:327)."""
    given = value(config, f"{RAY_INIT}._temp_dir")
    root = environment.get("RAY_TMPDIR") or environment.get("TMPDIR") or "/tmp"
    return Path(str(given)) if given else Path(root, "ray")


def _ask(address: str) -> tuple[Node, ...] | None:
    """The nodes of a cluster, none if no head node listens there; None: it could not be asked."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit() or not host or not listens(host, int(port)):
        return ()
    if "://" in address:
        return None
    for mode in ({"RAY_AUTH_MODE": "token"}, {}):  # as ray.init: with a token if there is one
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", ASK, address],
                capture_output=True,
                text=True,
                timeout=ASK_S,
                env={**mode, **os.environ},
            )
            return tuple(Node(cpus=cpus, gpus=gpus) for cpus, gpus in load_json(done.stdout.splitlines()[-1]))
        except (subprocess.TimeoutExpired, ValueError, TypeError, IndexError):
            continue
    return None


def listens(host: str, port: int) -> bool:
    """Whether a server accepts connections there."""
    try:
        with socket.create_connection((host.strip("[]"), port), timeout=CONNECT_S):
            return True
    except (OSError, OverflowError, UnicodeError):
        return False


def _devices() -> int:
    """Accelerators that torch sees; no context is created on them."""
    import torch

    npu = getattr(torch, "npu", None)
    return torch.cuda.device_count() or (npu.device_count() if npu is not None else 0)
