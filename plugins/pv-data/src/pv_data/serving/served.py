"""A checkpoint on disk behind a server of this command's own, which is gone when the command is, however it ends."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from pv_data.serving.folder import settings_in
from pv_data.serving.options import visible_gpus
from pv_judge.processes import interruptible, process_tree
from pv_rl.errors import ConfigError, SetupError

__all__ = ["LONG_S", "SERVERS", "Served", "choose_server", "served"]

Server = Literal["auto", "vllm", "transformers"]
SERVERS: tuple[Server, ...] = ("auto", "vllm", "transformers")
START_S = 900.0
"""How long a server may take to come up: a large model is read, compiled and warmed up."""
LONG_S = 24 * 3600.0
"""So long may an answer of a server of our own take: one request at a time, or a long text on a slow machine."""
TAIL = 2000
"""Characters of a log that an error shows."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that answers."""

    url: str
    model: str
    """What requests have to call the model."""
    server: str
    at_once: int
    """Requests that it can work on together."""
    gone: Callable[[], str]
    """Why it will never answer again, once it has ended; empty before."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """That a request needs besides."""


def choose_server(asked: str = "auto") -> str:
    """vLLM where it is installed and there is a GPU, else `transformers serve`.

    Raises:
        ConfigError: there is no such server.
    """
    if asked not in SERVERS:
        raise ConfigError(f"--server is {asked!r}; it is {', '.join(SERVERS)}")
    if asked != "auto":
        return asked
    return "vllm" if _has("vllm") and visible_gpus() else "transformers"


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    server: str,
    log: Path,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    start_s: float = START_S,
) -> Iterator[Served]:
    """Serve a model on a free port of this machine until the block ends.

    Args:
        folder: a model in Hugging Face's format.
        server: what `choose_server` gave.
        log: all that the server writes; it stays.
        arguments: further ones of the server's command line.
        env: further variables of its environment.
        start_s: how long it may take to come up.

    Raises:
        SetupError: a package is missing, or it did not come up; the text has the end of its log then.
    """
    port = _free_port()
    name = folder.name if server == "vllm" else str(folder)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [*_command(server, folder, name, port), *arguments]
    variables = {"OMP_NUM_THREADS": "1", **os.environ, "HF_HUB_OFFLINE": "1", **(env or {})}
    with interruptible(), process_tree(command, env=variables, cwd=log.parent, log=log) as child:
        _wait(child, f"http://127.0.0.1:{port}/health", log, start_s)
        url = f"http://127.0.0.1:{port}/v1"

        def gone() -> str:
            return "" if child.poll() is None else _ended(child, log)

        if server == "vllm":
            yield Served(url=url, model=name, server=server, at_once=256, gone=gone)
        else:  # it answers one request at a time
            yield Served(url=url, model=name, server=server, at_once=1, gone=gone, fields=_sampled(folder))


def _require(server: str) -> None:
    if server == "vllm" and not _has("vllm"):
        raise SetupError("--server vllm needs vLLM: pip install vllm, on a machine with a GPU")
    packages = () if server == "vllm" else ("transformers", "torch", "openai", "uvicorn")
    lacking = [name for name in packages if not _has(name)]
    if lacking:
        raise SetupError(
            f"a checkpoint without a GPU is served by transformers, which lacks {', '.join(lacking)}: "
            "pip install 'transformers[serving]', or give the address of a server that runs already"
        )


def _command(server: str, folder: Path, name: str, port: int) -> list[str]:
    _require(server)
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if server == "vllm":
        module = "vllm.entrypoints.openai.api_server"
        # Sampling is what the request says, and no top_k or penalty of the model's generation_config.json.
        named = ["--model", str(folder), "--served-model-name", name, "--generation-config", "vllm"]
        return [sys.executable, "-m", module, *named, *where]
    module = "transformers.cli.transformers"
    return [sys.executable, "-m", module, "serve", str(folder), "--device", "cpu", *where]


def _sampled(folder: Path) -> dict[str, Any]:
    """`transformers serve` (5.10) samples only where a generation config says so: a temperature alone is ignored. A
    config that is given replaces the model's, whose ends of text it has to repeat."""
    config: dict[str, Any] = {"do_sample": True, "top_k": 0}
    for name in ("config.json", "generation_config.json"):
        given = settings_in(folder, name)
        ids = ("bos_token_id", "eos_token_id", "pad_token_id")
        config |= {key: given[key] for key in ids if given.get(key) is not None}
    return {"generation_config": json.dumps(config, sort_keys=True)}


def _wait(child: subprocess.Popen[bytes], url: str, log: Path, start_s: float) -> None:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise SetupError(_ended(child, log))
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise SetupError(f"the server did not come up within {start_s:g} s; {_tail(log)}")


def _ended(child: subprocess.Popen[bytes], log: Path) -> str:
    return f"the server ended by itself, with {child.returncode}; {_tail(log)}"


def _tail(log: Path) -> str:
    text = log.read_bytes()[-TAIL:].decode("utf-8", "replace")
    shown = "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
    return f"its log {log} ends with\n{shown}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
