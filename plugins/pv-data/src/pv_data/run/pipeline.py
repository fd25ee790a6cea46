"""Pipeline: the stages of a run in order, in one folder."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from rich.console import Console

from pv_data.asking.asker import Stopped
from pv_data.asking.refused import NOT_SERVED
from pv_data.run.collect import check_entries, check_names, collect
from pv_data.run.config import RunConfig
from pv_data.run.finalize import finalize
from pv_data.run.folder import fold, forget_doubtful, forget_failures, locked, take_refusals
from pv_data.run.generate import Generating
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.run.manifest import STAGES, TABLES, check_manifest, with_revisions, write_manifest
from pv_data.run.progress import shown
from pv_data.run.servers import Servers
from pv_data.run.stage import Job, forget, is_done, pending, rejected_of
from pv_judge.pages.text import visible
from pv_rl.errors import ConfigError, SetupError

__all__ = ["check_stage", "forget_stage", "jobs", "retry_rejected", "run"]


def run(config: RunConfig, console: Console, *, redo: str = "", export_only: bool = False) -> Path:
    """Do all that is left of a run, and return its folder.

    Args:
        config: the run.
        console: for progress.
        redo: a stage that is done again, with all after it; answers that were kept cost nothing.
        export_only: ask nothing, and export what there is.

    Raises:
        ConfigError: settings that do not go together, or other ones than those of the folder.
        DataError: a source that is not what its kind says.
        Stopped: money, patience or the user ended it. The same command resumes it.
    """
    folder = Path(config.run_dir)
    if redo and export_only:
        raise ConfigError("--export-only exports what exists and --redo makes it again. Give one of the two")
    check_stage(redo)
    check_entries(folder, config)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), Servers(folder, console) as servers, contextlib.ExitStack() as started:
        config = with_revisions(config, folder)
        manifest = check_manifest(folder, config, redo)
        if redo:
            forget_stage(folder, redo)
        write_manifest(folder, manifest)
        fold(folder)
        collect(folder, config, console)
        check_names(folder, config)
        stages = jobs(folder.absolute(), config)  # a process of Ray may stand elsewhere
        if export_only:
            left = sum(job.questions(chunk) for job in stages for chunk in pending(job))
            finalize(folder, config, console, left=left)
            return folder
        forget_doubtful(folder)
        for job in stages:
            if config.retry_aside:
                retry_rejected(job)
            try:
                with shown(job, config.budget_usd, console):
                    _execute(job, config, servers, started)
            except BaseException:
                with contextlib.suppress(OSError):  # the next attempt does it too
                    fold(folder)
                raise
            finally:
                for line in take_refusals(folder):
                    console.print(
                        visible(f"{job.stage}: {line}"), style="yellow", highlight=False, markup=False
                    )
            forget_failures(folder)
            fold(folder)
        servers.end()
        finalize(folder, config, console)
    return folder


def check_stage(redo: str) -> None:
    """Check the value of `--redo`; raises `ConfigError`."""
    if redo and redo not in STAGES:
        raise ConfigError(f"--redo {redo!r} is not a stage. Give one of {', '.join(STAGES)}")


def jobs(folder: Path, config: RunConfig) -> list[Job]:
    """The stages that ask models."""
    stages: list[Job] = []
    if config.generate:
        stages.append(Generating(run=folder, config=config))
    if config.panel:
        stages.append(Judging(run=folder, config=config))
    return stages


def _execute(job: Job, config: RunConfig, servers: Servers, started: contextlib.ExitStack) -> None:
    if next(pending(job), None) is None:
        return
    execute = run_local
    if config.executor == "ray":
        try:
            from pv_data.run.ray_executor import ray_started, run_on_ray
        except ModuleNotFoundError as error:
            raise SetupError(f"executor=ray needs {error.name}: pip install ray") from error
        started.enter_context(ray_started(config.workers))
        execute = run_on_ray
    try:
        execute(servers.reach(job), config.workers)
    except Stopped as stopped:
        raise servers.why(stopped) from stopped


def retry_rejected(job: Job) -> None:
    """Have the chunks done again in which a model gave no answer. What it has answered costs nothing."""
    for chunk in job.chunks():
        if is_done(job, chunk) and any(row.reason.startswith(NOT_SERVED) for row in rejected_of(job, chunk)):
            if job.stage == Generating.stage:  # its proofs will be others, and are to be judged
                for label in (job.run / "labels").glob(f"*-{chunk.name}-*.parquet"):
                    label.unlink()
            forget(job, chunk)
            forget_failures(job.run)


def forget_stage(folder: Path, redo: str) -> None:
    """Delete the rows of a stage and of all later ones, the last stage first: an interrupted call leaves a run that has
    got less far."""
    for stage in reversed(STAGES[STAGES.index(redo) :]):
        for table in TABLES[stage]:
            if (folder / table).exists():
                shutil.rmtree(folder / table)
        for path in (folder / "aside").glob(f"{stage}-*.parquet"):
            path.unlink()
