"""Fork server: runs snippets of Python in new processes that share one import of verl's dependencies.

`import verl` takes six CPU seconds, and four of them are torch, transformers and tensordict. The server imports those,
but neither verl nor pv-rl, and forks for each snippet; the fork imports the rest as a fresh interpreter would.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["run_fresh", "run_module"]

SHARED = ("torch._dynamo", "transformers.modeling_utils", "tensordict", "ray", "datasets", "peft")


def run_fresh(
    code: str,
    *,
    path: Path | None = None,
    cwd: Path | None = None,
    inherit: Mapping[str, str] | None = None,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run a snippet as `python -W ignore -c CODE` does.

    Args:
        code: the snippet. It may not depend on being the first to import torch or transformers.
        path: a folder of packages that come before the installed ones, for its child processes as well.
        cwd: the folder that it runs in; None for this process's.
        inherit: the environment that `env` is added to; None for this process's.
        env: variables beside those.
    """
    environment = {**(os.environ if inherit is None else inherit), **env}
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), environment.get("PYTHONPATH")]))
    server = _server(os.getpid())
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        request = {
            "code": code,
            "path": path and str(path),
            "cwd": str(cwd or Path.cwd()),
            "env": environment,
            "out": str(out),
            "err": str(err),
        }
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the fork server has ended"
        return subprocess.CompletedProcess(code, int(answer), out.read_text(), err.read_text())


def run_module(name: str, *arguments: str) -> str:
    """The snippet for `python -m NAME ARGUMENTS`."""
    argv = [name, *arguments]
    return f"import runpy, sys; sys.argv = {argv}; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"


@functools.cache
def _server(owner: int) -> subprocess.Popen[str]:
    """The server of this process; it ends when the process does, which closes its stdin."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _serve() -> None:
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)  # an import that prints would be taken for an answer
    sys.path.pop(0)  # this folder: a script's folder comes first
    for name in SHARED:
        with suppress(ImportError):
            importlib.import_module(name)
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"verl", "pv_rl", "pv_judge", "pv_runs", "pv_cpu"}
    for line in requests:
        request = json.loads(line)
        if (child := os.fork()) == 0:
            requests.close()
            answers.close()
            _run(request)
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")


def _run(request: dict) -> None:
    """Be the new process."""
    for target, stream in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        os.dup2(os.open(stream, os.O_RDWR | os.O_CREAT), target)
    os.chdir(request["cwd"])
    signal.alarm(500)
    os.environ.clear()
    os.environ.update(request["env"])
    if request["path"]:
        sys.path.insert(0, request["path"])
    sys.argv = ["-c"]
    status = 0
    try:
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - as Python itself reports it
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
