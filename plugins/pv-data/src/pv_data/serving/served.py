"""Model server of a checkpoint: the command lines of `vllm serve` and `transformers serve`, and the GPUs they get."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pv_data.asking.local import Local
from pv_judge.files import load_json
from pv_judge.local_server import START_S, free_port, running_server
from pv_rl.errors import ConfigError, SetupError

__all__ = [
    "LONG_S",
    "SERVERS",
    "Served",
    "arguments_of",
    "choose_gpus",
    "choose_server",
    "served",
    "visible_gpus",
]

Server = Literal["auto", "vllm", "transformers"]
SERVERS: tuple[Server, ...] = ("auto", "vllm", "transformers")
LONG_S = 24 * 3600.0
"""Seconds that an answer of a server of our own may take: one request at a time, or a long text on a slow machine."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that answers."""

    url: str
    model: str
    """The model's name in requests."""
    server: str
    at_once: int
    """Requests that it works on together."""
    gone: Callable[[], str]
    """Why the server has ended; empty while it runs."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields that each request needs."""


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
        log: file to which the server's output is appended.
        arguments: added to the server's command line.
        env: variables added to its environment.
        start_s: seconds until it has to be ready.

    Raises:
        SetupError: a package is missing, or the server did not start; the text has the end of its log then.
    """
    port, vllm = free_port(), server == "vllm"
    name = folder.name if vllm else str(folder)
    command = [*_command(server, folder, name, port), *arguments]
    variables = {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "HF_HUB_OFFLINE": "1",
        **(env or {}),
    }
    with running_server(
        command,
        port=port,
        log=log,
        env=variables,
        ready="/v1/models" if vllm else "/health",
        start_s=start_s,
    ) as gone:
        yield Served(
            url=f"http://127.0.0.1:{port}/v1",
            model=name,
            server=server,
            at_once=256 if vllm else 1,  # transformers answers one request at a time
            gone=gone,
            fields={} if vllm else _sampled(folder),
        )


def arguments_of(local: Local) -> list[str]:
    """A local model's options for `vllm serve`. `{enforce_eager: true}` is `--enforce-eager`."""
    parallel = {"tensor_parallel_size": local.gpus, "data_parallel_size": local.replicas}
    found = []
    for name, value in {**local.engine, **parallel}.items():
        dashed = name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"--{dashed}" if value else f"--no-{dashed}")
        elif value is not None:
            found += [f"--{dashed}", json.dumps(value) if isinstance(value, dict | list) else str(value)]
    return found


def choose_gpus(local: Local, visible: list[str], taken: Collection[str]) -> list[str]:
    """GPUs that no other model has. Empty if they do not suffice: then models share all visible ones."""
    free, needed = [one for one in visible if one not in taken], local.gpus * local.replicas
    return free[:needed] if len(free) >= needed else []


def visible_gpus() -> list[str]:
    """GPUs by their names in CUDA_VISIBLE_DEVICES."""
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


def _command(server: str, folder: Path, name: str, port: int) -> list[str]:
    _require(server)
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if server == "vllm":
        module = "vllm.entrypoints.openai.api_server"
        # The request alone decides the sampling: no top_k or penalty of the model's generation_config.json.
        named = ["--model", str(folder), "--served-model-name", name, "--generation-config", "vllm"]
        return [sys.executable, "-m", module, *named, *where]
    module = "transformers.cli.transformers"
    return [sys.executable, "-m", module, "serve", str(folder), "--device", "cpu", *where]


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


def _sampled(folder: Path) -> dict[str, Any]:
    """`transformers serve` (5.10) samples only if a generation config says so and ignores a temperature alone. A config
    in the request replaces the model's, so it has to repeat the model's end-of-text tokens."""
    config: dict[str, Any] = {"do_sample": True, "top_k": 0}
    for name in ("config.json", "generation_config.json"):
        try:
            given = load_json((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        ids = ("bos_token_id", "eos_token_id", "pad_token_id")
        config |= {key: given[key] for key in ids if isinstance(given, dict) and given.get(key) is not None}
    return {"generation_config": json.dumps(config, sort_keys=True)}


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
