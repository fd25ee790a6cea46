"""One attempt at a run: verl in a process tree of its own, until it ends or is asked to."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen

from omegaconf import DictConfig
from rich.console import Console
from rich.markup import escape

from pv_rl.errors import SetupError
from pv_rl.train.failure import describe
from pv_rl.train.override import override
from pv_rl.train.process import interruptible, process_tree
from pv_rl.train.progress import Progress
from pv_rl.train.record import Record, metrics_path, now, versions, write_record
from pv_rl.train.stopping import ask_to_stop, forget

__all__ = ["attempt"]

POLL_S = 0.5


def attempt(
    folder: Path, config: DictConfig, *, number: int, extra: tuple[str, ...], console: Console
) -> Record:
    """Start verl on the config that lies in `folder/.hydra`, show its steps, and write down how it ended.

    The first Ctrl-C (or SIGTERM, SIGHUP) asks for a checkpoint at the end of the step and waits for it; the second
    ends the run at once, and what came after the last checkpoint is repeated by a resume.

    Args:
        folder: of the run.
        config: the same config, composed.
        number: 1 for the first attempt.
        extra: overrides of this attempt.

    Raises:
        KeyboardInterrupt: after either Ctrl-C; the record is written.
    """
    checkpoints = Path(config.trainer.default_local_dir)
    metrics, log = metrics_path(folder, number), folder / "verl.log"
    environment = {name: str(value) for name, value in (config.launch.env or {}).items()}
    environment |= {
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "PV_RL_RUN_DIR": str(folder),
        "HYDRA_FULL_ERROR": "1",
    }
    command = verl_command(folder, config, environment, extra)
    (folder / "command.sh").write_text(script(command, environment))

    record = Record(
        state="running",
        attempts=number,
        started=now(),
        versions=versions(),
        host=socket.gethostname(),
        pid=os.getpid(),
    )
    write_record(folder, record)
    forget(checkpoints)
    console.print(f"[bold]{escape(str(folder))}[/]: verl's log is verl.log", highlight=False)
    exit_code, asked = None, False
    try:
        with (
            interruptible(),
            process_tree(command, env={**os.environ, **environment}, cwd=Path.cwd(), log=log) as child,
            Progress(metrics, config.trainer.total_training_steps, console) as progress,
        ):
            try:
                exit_code = _wait(child, progress)
            except KeyboardInterrupt:
                if child.poll() is None and progress.began:
                    console.print("stopping after this step, with a checkpoint; again to end it at once")
                    asked = True
                    ask_to_stop(checkpoints)
                    exit_code = _wait(child, progress)
                else:
                    raise
    except KeyboardInterrupt:
        write_record(folder, record.ending("stopped", exit_code, "ended at once, by a signal"))
        raise
    finally:
        forget(checkpoints)
    if exit_code == 0:
        record = record.ending("finished" if progress.complete else "stopped", 0)
    else:
        record = record.ending("failed", exit_code, describe(exit_code, log))
    write_record(folder, record)
    if asked:
        raise KeyboardInterrupt
    return record


def _wait(child: Popen[bytes], progress: Progress) -> int:
    while (code := child.poll()) is None:
        progress.look()
        time.sleep(POLL_S)
    progress.look()
    return code


def verl_command(
    folder: Path, config: DictConfig, environment: Mapping[str, str], extra: tuple[str, ...]
) -> list[str]:
    """The saved config, with this folder written into it, and variables for processes that Ray starts elsewhere."""
    if not (folder / ".hydra" / "config.yaml").is_file():
        raise SetupError(
            f"{folder} has no .hydra/config.yaml: pv-rl train needs Hydra to save it (hydra.output_subdir)"
        )
    variables = (
        f"++ray_kwargs.ray_init.runtime_env.env_vars.{override(name, value)}"
        for name, value in environment.items()
    )
    return [
        *(sys.executable, "-m", str(config.launch.module)),
        *("--config-path", str(folder / ".hydra"), "--config-name", "config"),
        override("run_dir", folder),
        override("hydra.run.dir", folder / "hydra"),
        "hydra.output_subdir=null",
        *variables,
        *extra,
    ]


def script(command: list[str], environment: Mapping[str, str]) -> str:
    """A shell script that starts verl without us, and goes on from the last checkpoint."""
    variables = (f"{name}={shlex.quote(value)}" for name, value in environment.items())
    lines = [*variables, shlex.join(command[:3]), *map(shlex.quote, command[3:])]
    return "#!/bin/sh\n# What pv-rl train ran.\n" + " \\\n  ".join(lines) + "\n"
