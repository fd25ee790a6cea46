"""Ports: those that the run opens have to be free, and a judge on this machine has to listen."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf

from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import RAY_INIT, Machine, listens

__all__ = ["check_ports"]

LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1|0\.0\.0\.0")
LISTENS = (
    ("transfer_queue.metrics.port", "transfer_queue.metrics.enabled"),
    (
        "actor_rollout_ref.rollout.disaggregation.bootstrap_port",
        "actor_rollout_ref.rollout.disaggregation.enabled",
    ),
)
"""A fixed port, and what turns it on. All other ports of verl are chosen among those that are free."""


def check_ports(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether fixed ports are free, and whether the servers that the judge's endpoints name on this machine listen."""
    faults, opened, asked = [], 0, 0
    for key, port in _fixed(config, machine):
        opened += 1
        if not isinstance(port, int) or not 0 < port < 2**16:
            faults.append(wrong(f"{key} is {port!r}; a port is a number from 1 to 65535", f"correct {key}"))
        elif not _free(port):
            faults.append(
                wrong(f"{key}={port}: the port is in use", f"set {key} to a free port, or leave it out")
            )
    for url in sorted(set(_urls(OmegaConf.to_container(config.reward, resolve=True)))):
        parts = urlsplit(url)
        asked += 1
        if not listens(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)):
            text, remedy = f"no server listens at {url}, which the judge asks", "start it before the run"
            elsewhere = machine.cluster and "; the run may have it on the nodes of the cluster"
            faults.append(note(text + elsewhere) if elsewhere else wrong(text, remedy))
    yield from faults or [right(f"{opened} fixed ports are free, {asked} judges on this machine listen")]


def _fixed(config: DictConfig, machine: Machine) -> Iterator[tuple[str, object]]:
    for key, enabled in LISTENS:
        if value(config, enabled) and value(config, key):
            yield key, value(config, key)
    if machine.cluster:  # its ports were chosen when it started
        return
    for name in OmegaConf.select(config, RAY_INIT) or ():
        port = value(config, f"{RAY_INIT}.{name}")
        unused = name == "dashboard_port" and value(config, f"{RAY_INIT}.include_dashboard") is False
        if str(name).endswith("port") and port is not None and not unused:
            yield f"{RAY_INIT}.{name}", port


def _urls(tree: object) -> Iterator[str]:
    if isinstance(tree, dict):
        url = tree.get("url")
        if isinstance(url, str) and url.startswith("http") and LOCAL.fullmatch(urlsplit(url).hostname or ""):
            yield url
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _urls(one)


def _free(port: int) -> bool:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("", port))
        except OSError:
            return False
    return True
