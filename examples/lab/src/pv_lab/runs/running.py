"""The command `pv-rl lab run`: trains one run after the other, each as `pv-rl train` does."""

from __future__ import annotations

from rich.console import Console

from pv_judge.pages.text import plural
from pv_lab.environment import check_environment, check_room
from pv_lab.runs.display import Display
from pv_lab.runs.plan import LabRun, check_folder, compose_run, plan_runs, save_config
from pv_lab.runs.settings import LabSettings
from pv_rl.errors import PvRlError, SetupError
from pv_runs.metrics_log import read_log
from pv_runs.recipes import check
from pv_runs.run_folder import RunFolder, locked
from pv_runs.run_record import next_record, read_record, write_record
from pv_runs.train.command import resume
from pv_runs.train.job import start
from pv_runs.train.progress import say

__all__ = ["run_lab"]

AGAIN = "the same command goes on from the last checkpoint"


def run_lab(settings: LabSettings, console: Console) -> None:
    """Train what is not trained yet. Runs that ended stay, one that stopped goes on from its last checkpoint.

    A run that fails is written down and the others go on, unless it failed before it logged anything: then its cause
    is none of the weighting's, and the others would fail too.

    Raises:
        PvRlError: something cannot work, and nothing was started; or runs failed.
        KeyboardInterrupt: after Ctrl-C, which ends the run after its step, with a checkpoint.
    """
    check_environment("the lab")
    runs = plan_runs(settings)
    configs = [compose_run(settings, run) for run in runs[: len(settings.modes)]]
    for config in configs:
        check(config)
    check_folder(settings, configs[0])
    todo = [run for run in runs if run.state != "finished"]
    check_room(settings.out, len(todo))
    settings.out.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    ended = len(runs) - len(todo)
    with (
        locked(settings.out),
        Display(console, runs=len(runs), ended=ended, steps=settings.steps) as display,
    ):
        for run in todo:
            display.begin(run)
            try:
                state, error = _train(settings, run, display.run_console)
            except KeyboardInterrupt:
                say(console, f"{run.folder.name}: {AGAIN}")
                raise
            display.end(state)
            if state == "stopped":  # by its stop file, from elsewhere
                say(console, f"{run.folder.name} was asked to stop: {AGAIN}")
                return
            if state == "failed":
                failed.append(f"{run.folder}: {error}")
                if read_log(run.folder).last_step is None:
                    break
    if failed:
        raise SetupError(
            f"{len(failed)} of {plural(len(runs), 'run')} failed; the same command tries them again. "
            + "\n".join(failed)
        )
    trained = f"{len(todo)} trained now" if todo else "nothing to train"
    say(
        console,
        f"{plural(len(runs), 'run')} are finished, {trained}. Side by side: pv-rl lab report {settings.out}",
    )


def _train(settings: LabSettings, run: LabRun, console: Console) -> tuple[str, str | None]:
    """Start a run, or go on with it: its state and what went wrong.

    Raises:
        SetupError: another process has the run.
        KeyboardInterrupt: it was stopped.
    """
    if run.state == "new":
        config = compose_run(settings, run)
        save_config(settings, run, config)
        record = next_record(None)
        try:
            record = start(run.folder, config, record, console)
        except PvRlError as error:
            if RunFolder(run.folder).record.exists():
                raise
            record = record.ending("failed", None, str(error))
            write_record(run.folder, record)
    else:
        try:
            resume(run.folder, (), console)
        except SetupError:
            if read_record(run.folder).state != "failed":
                raise
        record = read_record(run.folder)
    return record.state, record.error
