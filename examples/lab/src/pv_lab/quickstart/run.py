"""The command `pv-rl quickstart`: prepares the lab, runs verl or TRL on it, and reports what changed."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
from rich.console import Console

from pv_judge.override import override
from pv_judge.pages.terminal import curve_characters, print_blocks, print_line
from pv_judge.processes import interruptible, process_tree
from pv_lab.quickstart.curves import Point, follow
from pv_lab.quickstart.display import Display, before_and_after
from pv_lab.quickstart.figure import draw
from pv_lab.quickstart.settings import Settings, environment, trainer_command
from pv_lab.quickstart.start import follow_stages, weights_of_traces
from pv_rl.errors import LossModeError, SetupError
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import next_record, write_record
from pv_runs.train.attempt import shell_script
from pv_runs.train.failure import describe_failure

__all__ = ["next_lines", "run_quickstart"]

RAY_FOLDER = "pvrl"
HEADING = "# What pv-rl quickstart ran.\nunset RAY_ADDRESS"


def run_quickstart(settings: Settings, console: Console) -> list[Point]:
    """Train the lab verifier and report.

    Returns:
        The points of the run, the first before training.

    Raises:
        SetupError: the folder is in use, or the trainer failed (its last exceptions are in the text).
        LossModeError: nobody knows the mode, or it is verl's own and the trainer is not verl.
        KeyboardInterrupt: as usual, with every process of the run gone.
    """
    from pv_lab.prepare import write_data

    _check_mode(settings)
    out = settings.out.resolve()
    _make_folder(out)
    started = time.monotonic()
    paths = RunFolder(out)
    trainer = settings.trainer
    log, metrics = out / f"{trainer}.log", paths.metrics(1)
    console.print(f"{trainer}'s own log: {log}")
    command = trainer_command(settings, out)
    paths.command.write_text(shell_script(command, environment(out / "again.jsonl", trainer), HEADING))
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    env |= environment(metrics, trainer)
    with interruptible(), _recorded(out), contextlib.ExitStack() as stack:
        write_data(out / "data", settings.seed)
        start_up = f"starting {trainer}"
        if trainer == "verl":
            start_up = "starting Ray and the workers"
            ray_folder = stack.enter_context(_ray_folder())
            command = [*command, override("+ray_kwargs.ray_init._temp_dir", ray_folder)]
        with (
            process_tree(command, env=env, cwd=out, log=log) as child,
            Display(console, settings.steps, start_up) as display,
        ):
            try:
                if trainer == "verl":
                    print_blocks(weights_of_traces(settings.mode), console)
                _watch(child, settings, display, follow(metrics), follow_stages(log))
                if display.points and display.points[-1].step == settings.steps:
                    draw(display.points, _name(settings), out / "curves.png")  # while the trainer shuts down
                child.wait()
            except KeyboardInterrupt:
                console.print("stopping the run; again to kill it at once")
                raise

        points = display.points
        if child.returncode != 0 or not points or points[-1].step < settings.steps:
            raise SetupError(describe_failure(child.returncode, log, trainer))
    _report(points, settings, out, console, time.monotonic() - started)
    return points


@contextlib.contextmanager
def _recorded(out: Path) -> Iterator[None]:
    """Keep the state of the run in run.json, where `pv-rl report` and `pv-rl watch` read it."""
    record = next_record(None)
    write_record(out, record)
    try:
        yield
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        why = "ended by a signal" if interrupted else str(error)
        write_record(out, record.ending("stopped" if interrupted else "failed", None, why))
        raise
    write_record(out, record.ending("finished", 0))


def _watch(
    child: subprocess.Popen[bytes],
    settings: Settings,
    display: Display,
    points: Iterator[Point | None],
    stages: Iterator[str | None],
) -> None:
    """Show what the trainer does until its last step, or its end."""
    for point in points:
        while (stage := next(stages)) is not None:
            display.enter(stage)
        if point is not None:
            display.add(point)
            if point.step >= settings.steps:
                return
        elif child.poll() is not None:
            return
        else:
            time.sleep(0.2)


def _name(settings: Settings) -> str:
    return settings.mode if settings.trainer == "verl" else f"{settings.mode} with {settings.trainer}"


@contextlib.contextmanager
def _ray_folder() -> Iterator[Path]:
    """A folder for Ray's sockets, whose names have to be short, gone afterwards.

    Those of quick starts that were killed are removed as well: the folder is named after its process.
    """
    root = Path("/tmp") if os.path.isdir("/tmp") else Path(tempfile.gettempdir())
    for stale in root.glob(f"{RAY_FOLDER}-*-*"):
        owner = stale.name.split("-")[1]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{RAY_FOLDER}-{os.getpid()}-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_mode(settings: Settings) -> None:
    from pv_rl.losses import resolve_mode
    from pv_rl.plugins import VERL_MODES

    if settings.mode not in VERL_MODES:
        resolve_mode(settings.mode)
    elif settings.trainer != "verl":
        raise LossModeError(
            f"--mode {settings.mode} is verl's own, and --trainer {settings.trainer} takes pv-rl's modes. Write "
            "dapo@batch for token-mean and grpo@batch for seq-mean-token-mean; docs/concepts/weightings.md lists all"
        )


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise SetupError(f"--out {out} is a file; name a folder")
    if out.exists() and any(out.iterdir()):
        raise SetupError(
            f"--out {out} is not empty; name another folder, or remove it if no run is in progress there: "
            f"rm -r {shlex.quote(str(out))}"
        )
    out.mkdir(parents=True, exist_ok=True)
    try:
        RunFolder(out).record.touch(exist_ok=False)
    except FileExistsError as error:
        raise SetupError(f"another quick start has just begun in --out {out}; name another folder") from error


def _report(points: list[Point], settings: Settings, out: Path, console: Console, seconds: float) -> None:
    print_blocks(before_and_after(points, _name(settings), curve_characters(console)), console)
    record = {
        "settings": asdict(settings) | {"out": str(out)},
        "seconds": round(seconds, 1),
        "points": [asdict(point) | {"balanced": point.balanced} for point in points],
    }
    (out / "result.json").write_text(json.dumps(record, indent=1))
    console.print(f"{seconds:.0f} s. Picture: {out / 'curves.png'}   Numbers: {out / 'result.json'}")
    print_line(
        console, "Held-out answers are sampled: a difference of .03 is chance. The seed fixes the data alone."
    )
    console.print("\nTo try next:")
    for line in next_lines(settings):
        print_line(console, f"    {line}")


def next_lines(settings: Settings) -> list[str]:
    """Three commands, as they can be typed in this folder."""
    program = shlex.quote(_program())
    other = "dapo" if settings.mode != "dapo" else "balanced"
    trainer = "" if settings.trainer == "verl" else f" --trainer {settings.trainer}"
    run = shlex.quote(str(settings.out))
    # The default folder is one of several in runs/. Beside a folder that the user named may be anything.
    runs = "runs" if settings.out.parent == Path("runs") else run
    same = f"--seed {settings.seed} --steps {settings.steps}{trainer}"
    return [
        f"{program} weights --rollouts {run}/rollouts --step 1  # weights of the first step's responses, by mode",
        f"{program} quickstart --mode {other} {same}  # another weighting",
        f"{program} report {runs}  # a page with curves, and what differs if there are several runs",
    ]


def _program() -> str:
    """`pv-rl` if the shell finds this installation's, else its path."""
    installed = Path(sys.executable).with_name("pv-rl")
    if shutil.which("pv-rl") == str(installed) or not installed.exists():
        return "pv-rl"
    return os.path.relpath(installed) if installed.is_relative_to(Path.cwd()) else str(installed)
