"""Driver of the study: supervised starts, then RL runs, several at a time on one GPU.

    python -m pv_lab.smol.runs --data DATA --model SMOLLM2 --out OUT --minutes 19

Each run is one of `pv-rl train` with its own folder in OUT. Its metrics and validations are written while it runs. The
same command resumes a study: it skips finished runs, and starts a run that was cut from its first step.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Annotated

import typer

from pv_judge.processes import interruptible, process_tree
from pv_lab.many_runs import run_command
from pv_lab.smol.plan import FROM, MODES, Cell, cells, shared_overrides, start_folder, start_overrides
from pv_lab.smol.ray_slot import ray_slot
from pv_rl.errors import ConfigError, SetupError
from pv_runs.metrics_log import read_log
from pv_runs.recipes import compose
from pv_runs.run_folder import RunFolder, locked
from pv_runs.run_record import read_record

__all__ = ["Study", "run_study"]

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "2",
    "PV_CPU_POLL_SECONDS": "0.2",  # verl's replay buffer looks every 2 s, a quarter of a step of this size
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
}
"""Of every run, unless the user has set it."""
TRAIN = (sys.executable, "-W", "ignore", "-m", "pv_rl.cli", "train")
CPUS = 64
"""Logical cores of a run's Ray cluster: verl reserves more than it keeps busy."""
POLL_S = 1.0
STAGGER_S = 8.0
"""Seconds between two starts, so that one reads from disk what the next finds in memory."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is trained, and how much of it at a time."""

    data: Path
    """Folder of `pv_lab.smol.data`."""
    model: Path
    """Folder of the model that the supervised starts begin from."""
    out: Path
    runs: Sequence[Cell]
    """In the order in which they are started."""
    steps: int
    """Of an RL run."""
    sft_steps: Mapping[str, int]
    """Of each supervised start."""
    at_once: int
    """RL runs at a time."""
    minutes: float
    """All runs end after this time. None is started that would not end in it if it took as long as the fastest one."""
    run_minutes: float
    """What an RL run is expected to take as long as none has finished."""
    sft_overrides: Sequence[str] = ()
    """Of every supervised run."""
    cpu: bool = False
    """Whether the runs use `cluster=cpu`."""


@dataclass(kw_only=True)
class Running:
    """A run in its slot."""

    cell: Cell
    child: Popen[bytes]
    stack: contextlib.ExitStack
    """Closing it ends the run and its Ray cluster."""
    began: float
    shown: int = -1
    """The last step that was printed."""


def run_study(study: Study, show: Callable[[str], None]) -> bool:
    """Train what is not finished yet, until all is or the time is up.

    Returns:
        Whether all runs are finished.

    Raises:
        SetupError: a supervised start failed, or another process trains this study.
    """
    end = time.monotonic() + 60 * study.minutes
    environment = {**ENVIRONMENT, **os.environ}
    study.out.mkdir(parents=True, exist_ok=True)
    with interruptible(), locked(study.out):
        for start in _starts(study):
            if not _train_start(study, start, environment, end, show):
                return False
        return _train_all(study, environment, end, show)


def _starts(study: Study) -> Iterator[str]:
    """Those that the runs need and those that these are trained from, in the order of training."""
    needed = {cell.start for cell in study.runs}
    for start in FROM:
        if start in needed or any(FROM[one] == start for one in needed):
            yield start


def _train_start(
    study: Study, start: str, environment: Mapping[str, str], end: float, show: Callable[[str], None]
) -> bool:
    folder = start_folder(study.out, start)
    if _finished(folder):
        return True
    _set_apart(folder)
    folder.mkdir(parents=True)
    began = time.monotonic()
    overrides = start_overrides(
        start, study.model, study.data, study.out, study.sft_steps[start], cpu=study.cpu
    )
    command = [*TRAIN, *overrides, *study.sft_overrides]
    show(f"start {start}: {study.sft_steps[start]} supervised steps")
    log = folder / "train.log"
    with process_tree(command, env=environment, cwd=Path.cwd(), log=log) as child:
        while child.poll() is None:
            if time.monotonic() > end:
                show(f"start {start}: cut, the time is up")
                return False
            time.sleep(POLL_S)
    if child.returncode:
        raise SetupError(f"the supervised start {start!r} failed: {_cause(folder)}. Read {log}")
    show(f"start {start}: finished after {time.monotonic() - began:.0f} s")
    return True


def _train_all(study: Study, environment: Mapping[str, str], end: float, show: Callable[[str], None]) -> bool:
    waiting = [cell for cell in study.runs if not _finished(_folder(study, cell))]
    show(
        f"{len(study.runs)} runs, {len(study.runs) - len(waiting)} finished before, {study.at_once} at a time"
    )
    slots: dict[int, Running] = {}
    expected, last_start, finished, failed = 60 * study.run_minutes, -STAGGER_S, 0, 0
    try:
        while waiting or slots:
            now = time.monotonic()
            for slot, running in list(slots.items()):
                _show_step(study, running, show)
                if running.child.poll() is None:
                    continue
                del slots[slot]
                running.stack.close()
                if _finished(_folder(study, running.cell)):
                    took = now - running.began
                    expected, finished = min(expected, took) if finished else took, finished + 1
                    show(f"{running.cell.name}: finished after {took:.0f} s")
                else:
                    failed += 1
                    show(f"{running.cell.name}: failed. {_cause(_folder(study, running.cell))}")
            if now > end:
                for running in slots.values():
                    show(f"{running.cell.name}: cut at step {max(running.shown, 0)}, the time is up")
                _interrupt([running.child for running in slots.values()])
                return False
            if failed >= study.at_once and not finished:
                raise SetupError(
                    f"the first {failed} runs failed, so no other is started. Read verl.log and train.log in "
                    f"{study.out / 'runs'}"
                )
            fits = now + expected < end
            if waiting and not fits and not slots:
                show(f"{len(waiting)} runs are left for another time: one takes {expected:.0f} s")
                return False
            if waiting and fits and len(slots) < study.at_once and now - last_start >= STAGGER_S:
                slot, cell = next(one for one in range(study.at_once) if one not in slots), waiting.pop(0)
                try:
                    slots[slot] = _begin(study, cell, slot, environment)
                    show(f"{cell.name}: started in slot {slot}")
                except SetupError as error:
                    failed += 1
                    show(f"{cell.name}: failed. {error}")
                last_start = time.monotonic()
            time.sleep(POLL_S)
    finally:
        for running in slots.values():
            running.stack.close()
    return not failed


def _begin(study: Study, cell: Cell, slot: int, environment: Mapping[str, str]) -> Running:
    folder = _folder(study, cell)
    _set_apart(folder)
    folder.mkdir(parents=True)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        short = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="pv", dir="/tmp", ignore_cleanup_errors=True)
        )
        variables = {**environment, "VERL_PLATFORM": "cpu"} if study.cpu else environment
        # A run that starts Ray itself has the job ids of slot 0.
        address = stack.enter_context(ray_slot(slot + 1, Path(short), variables, cpus=CPUS))
        command = [*TRAIN, *cell.overrides(study.data, study.out, study.steps, cpu=study.cpu)]
        joined = {**environment, "RAY_ADDRESS": address, "RAY_AUTH_MODE": "disabled"}
        tree = process_tree(command, env=joined, cwd=Path.cwd(), log=folder / "train.log")
        child = stack.enter_context(tree)
        return Running(cell=cell, child=child, stack=stack.pop_all(), began=began)


def _interrupt(children: Sequence[Popen[bytes]]) -> None:
    """End several runs at the same time: the first signal asks for a checkpoint, the second ends a run at once."""
    for _ in range(2):
        for child in children:
            child.send_signal(signal.SIGINT)
        time.sleep(POLL_S)


def _show_step(study: Study, running: Running, show: Callable[[str], None]) -> None:
    """Print a run's step every fifth time it has a new one."""
    with contextlib.suppress(Exception):  # a metrics file that is just being written
        step = read_log(_folder(study, running.cell), lambda key: key == "training/global_step").last_step
        if step is not None and step > running.shown and (step % 5 == 0 or running.shown < 0):
            running.shown = step
            show(f"{running.cell.name}: step {step} after {time.monotonic() - running.began:.0f} s")


def _folder(study: Study, cell: Cell) -> Path:
    return study.out / "runs" / cell.name


def _finished(folder: Path) -> bool:
    return RunFolder(folder).record.is_file() and read_record(folder).state == "finished"


def _set_apart(folder: Path) -> None:
    """Rename what is left of a run that was cut: hidden folders are not in a report."""
    if folder.exists():
        number = next(n for n in range(1, 10_000) if not folder.with_name(f".{folder.name}-cut-{n}").exists())
        folder.rename(folder.with_name(f".{folder.name}-cut-{number}"))


def _cause(folder: Path) -> str:
    """Why a run failed: the first line of its record's error, or the last line that it printed."""
    record, log = RunFolder(folder).record, folder / "train.log"
    if record.is_file() and (error := read_record(folder).error):
        return error.splitlines()[0][:300]
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def main(
    data: Annotated[Path, typer.Option(help="Folder of pv_lab.smol.data.")],
    model: Annotated[Path, typer.Option(help="Folder of SmolLM2-135M-Instruct (convert_smollm2.py).")],
    out: Annotated[Path, typer.Option(help="Folder of the study. The same command resumes it.")],
    start: Annotated[
        list[str] | None, typer.Option(help="exact or weak. Repeat it.", show_default="weak")
    ] = None,
    share: Annotated[
        list[int] | None,
        typer.Option(help="Percent of right proofs, 50 or 75. Repeat it.", show_default="75"),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="A loss_agg_mode. Repeat it.", show_default=", ".join(MODES))
    ] = None,
    veto: Annotated[str, typer.Option(help="yes, no or both.")] = "yes",
    seeds: Annotated[int, typer.Option(help="Runs of each setting.")] = 3,
    first_seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of an RL run.")] = 30,
    exact_steps: Annotated[int, typer.Option(help="Supervised steps with exact checks.")] = 450,
    weak_steps: Annotated[int, typer.Option(help="Supervised steps with weak checks, after these.")] = 200,
    at_once: Annotated[int, typer.Option(help="RL runs at a time; about 20 GB of GPU memory each.")] = 6,
    minutes: Annotated[float, typer.Option(help="All runs end after this time.")] = 1e6,
    run_minutes: Annotated[float, typer.Option(help="Expected time of the first RL run.")] = 8.0,
    cpu: Annotated[bool, typer.Option("--cpu", help="Rehearse with cluster=cpu.")] = False,
    rl: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE of RL runs, part of their names. Repeat it.", show_default=False),
    ] = None,
    sft: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE of the supervised runs. Repeat it.", show_default=False),
    ] = None,
) -> None:
    """Train the supervised starts, then every RL run that the options name."""
    vetoes = {"yes": [True], "no": [False], "both": [True, False]}.get(veto)
    if vetoes is None:
        raise ConfigError(f"--veto is {veto!r}; give yes, no or both")
    for name, number in {"seeds": seeds, "steps": steps, "at-once": at_once}.items():
        if number < 1:
            raise ConfigError(f"--{name} is {number}; give 1 or more")
    for name, number in {"minutes": minutes, "run-minutes": run_minutes}.items():
        if not number > 0:
            raise ConfigError(f"--{name} is {number:g}; give a number above 0")
    for option, folder in {"--data": data, "--model": model}.items():
        if not folder.is_dir():
            raise ConfigError(f"{option}: there is no folder {folder}")
    if out.is_file():
        raise ConfigError(f"--out {out} is a file; give a folder")
    if rl:
        # A misspelt key would otherwise be found only after the supervised starts.
        compose("small", [*shared_overrides(cpu=cpu), *rl])
    study = Study(
        data=data.resolve(),
        model=model.resolve(),
        out=out.resolve(),
        runs=cells(
            start or ["weak"],
            share or [75],
            mode or MODES,
            vetoes,
            range(first_seed, first_seed + seeds),
            rl or (),
        ),
        steps=steps,
        sft_steps={"exact": exact_steps, "weak": weak_steps},
        at_once=at_once,
        minutes=minutes,
        run_minutes=run_minutes,
        sft_overrides=sft or (),
        cpu=cpu,
    )
    began = time.monotonic()
    done = run_study(study, lambda text: typer.echo(f"{time.monotonic() - began:6.0f} s  {text}"))
    raise typer.Exit(0 if done else 3)


if __name__ == "__main__":
    run_command(main)
