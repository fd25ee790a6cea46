"""Attempt: one start of verl for a run, in a process tree of its own, until it ends or is asked to stop."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen

from omegaconf import DictConfig
from rich.console import Console

from pv_judge.override import override
from pv_judge.processes import interruptible, process_tree
from pv_rl.errors import SetupError
from pv_rl.stop_file import ask_to_stop, forget
from pv_runs.run_folder import RunFolder, locked
from pv_runs.run_record import Record, write_record
from pv_runs.train.failure import describe_failure
from pv_runs.train.loggers import logger_environment, logger_overrides, prepare_loggers
from pv_runs.train.progress import Progress, say

__all__ = ["attempt", "shell_script", "verl_command"]

POLL_S = 0.5


def attempt(folder: Path, config: DictConfig, record: Record, console: Console) -> Record:
    """Start verl on the config that lies in `folder/.hydra`, show its steps, and write down how it ended.

    The first Ctrl-C (or SIGTERM, SIGHUP) asks for a checkpoint at the end of the step and waits for it; the second
    ends the run at once, and what came after the last checkpoint is repeated by a resume. verl's older trainers
    cannot be asked: there the first one ends the run.

    Args:
        folder: of the run.
        config: the same config, composed.
        record: of this attempt, which begins.
        console: for a line a step.

    Raises:
        SetupError: another process has the run, or Hydra saved no config.
        KeyboardInterrupt: after either Ctrl-C, unless the run failed; the record is written.
    """
    checkpoints = Path(record.cwd, config.trainer.default_local_dir)
    paths = RunFolder(folder)
    metrics, log = paths.metrics(record.attempts), paths.log
    environment = {name: str(value) for name, value in (config.launch.env or {}).items()}
    environment |= {
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "PV_RL_RUN_DIR": str(folder),
        "HYDRA_FULL_ERROR": "1",
    }
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:
        environment["RAY_OVERRIDE_JOB_RUNTIME_ENV"] = (
            "1"  # else Ray refuses each variable that its job sets too
        )
    environment = logger_environment(folder, config, record) | environment
    overrides = (*record.overrides, *logger_overrides(folder, config, record))
    command = verl_command(folder, config, environment, overrides)

    with locked(folder) as lock:
        prepare_loggers(folder, config, environment)
        forget(checkpoints)
        paths.command.write_text(_by_hand(folder, config, environment, overrides, record.cwd))
        write_record(folder, record)
        say(console, f"{folder}: verl's log is verl.log")
        progress = Progress(metrics, config.trainer.total_training_steps, console)
        may_ask = config.trainer.get("use_v1") and "one_step_off" not in config.launch.module
        exit_code, asked = None, False
        try:
            with (
                interruptible(),
                process_tree(
                    command,
                    env={**os.environ, **environment},
                    cwd=Path(record.cwd),
                    log=log,
                    pass_fds=(lock,),  # verl keeps the run as long as it lives, whatever becomes of us
                ) as child,
            ):
                try:
                    exit_code = _wait(child, progress)
                except KeyboardInterrupt:
                    progress.look()  # a step may have ended since the last look
                    if child.poll() is not None or not progress.began or not may_ask:
                        raise
                    asked = True
                    ask_to_stop(checkpoints)
                    say(console, "stopping after this step, with a checkpoint; again to end it at once")
                    exit_code = _wait(child, progress)
        except BaseException as error:
            by_signal = isinstance(error, KeyboardInterrupt)
            why = "ended at once, by a signal" if by_signal else f"{type(error).__name__}: {error}"
            state = "stopped" if by_signal else "failed"
            write_record(folder, record.ending(state, exit_code, why, progress.last_step))
            raise
        finally:
            forget(checkpoints)
        if exit_code == 0:
            state = "finished" if progress.complete(asked=asked) else "stopped"
            record = record.ending(state, 0, last_step=progress.last_step)
        else:
            failure = describe_failure(exit_code, log)
            record = record.ending("failed", exit_code, failure, progress.last_step)
        write_record(folder, record)
    if asked and exit_code == 0:
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
    saved = RunFolder(folder).config
    if not saved.is_file():
        raise SetupError(f"{saved} is missing: pv-rl train needs Hydra to save it (hydra.output_subdir)")
    variables = (
        f"++ray_kwargs.ray_init.runtime_env.env_vars.{override(name, value)}"
        for name, value in environment.items()
    )
    return [
        *(sys.executable, "-m", str(config.launch.module)),
        *("--config-path", str(saved.parent), "--config-name", "config"),
        override("run_dir", folder),
        override("hydra.run.dir", folder / "hydra"),
        "hydra.output_subdir=null",
        *variables,
        *extra,
    ]


def _by_hand(
    folder: Path, config: DictConfig, environment: Mapping[str, str], overrides: tuple[str, ...], cwd: str
) -> str:
    """The script that starts verl alone. Each start has a metrics file of its own, since verl empties its file."""
    number = "<n>"  # has to be quoted in a shell, and is no part of a path
    environment = {**environment, "VERL_FILE_LOGGER_PATH": str(folder / f"metrics{number}.jsonl")}
    heading = (
        "# What pv-rl train ran; it goes on from the last checkpoint.\n"
        f"cd {shlex.quote(cwd)} || exit\n"
        f"n= k=1; while [ -e {shlex.quote(str(folder))}/metrics$n.jsonl ]; do k=$((k+1)) n=-$k; done"
    )
    script = shell_script(verl_command(folder, config, environment, overrides), environment, heading)
    return script.replace(number, "'\"$n\"'")


def shell_script(command: Sequence[str], environment: Mapping[str, str], heading: str) -> str:
    """The command, an argument a line, with its environment; `heading` comes first."""
    variables = (f"{name}={shlex.quote(value)}" for name, value in environment.items())
    lines = [*variables, shlex.join(command[:3]), *map(shlex.quote, command[3:])]
    return f"#!/bin/sh\n{heading}\n" + " \\\n  ".join(lines) + "\n"
