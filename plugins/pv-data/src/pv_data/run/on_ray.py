"""The executor `ray`: a stage's processes as tasks of Ray, on one machine or on a cluster with a shared folder.

Each task does its part of the chunks, as a process of the executor `local` does; one whose node is lost is started
again by Ray, three times, and goes on where it was. `RAY_ADDRESS` names a cluster; without it Ray starts on this
machine. What is asked of local models is answered before, in batches of Ray Data (`pv_data.run.prefill`).

The parts are no dataset of Ray Data: its executor adds tasks to a stage a few at a time, so that the last of eight
parts began some seconds after the first (measured in benchmarks/README.md, judging_pipeline.py).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import ray
import ray.data
import ray.exceptions

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Job, moneys
from pv_data.run.config import RunConfig
from pv_data.run.prefill import cpus_of, prefill
from pv_data.run.task import be_ready, do_part
from pv_judge.processes import interruptible
from pv_rl.errors import PvRlError, SetupError

__all__ = ["ray_started", "run_on_ray"]

RETRIES = 3
"""Times that a part is started again whose process or node is lost."""
WARM_UP_S = 30.0
"""So long a start waits for Ray's processes, for which there may be no room yet."""
SECOND_S = 5.0
"""So long a part may take to end by a second Ctrl-C; then it is killed."""


@contextlib.contextmanager
def ray_started(config: RunConfig, workers: int) -> Iterator[None]:
    """Ray and its processes until the block ends, unless it runs already: about ten seconds, once for all stages."""
    if ray.is_initialized():
        yield
        return
    # Logical CPUs: each process holds one, and with too few of them a batch would never begin.
    cpus = workers + sum(cpus_of(model.local) for model in config.models.values() if model.local is not None)
    alone: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False}
    ray.init(
        logging_level=logging.ERROR, log_to_driver=False, **({} if os.environ.get("RAY_ADDRESS") else alone)
    )
    try:
        _warm_up(workers)
        yield
    finally:
        ray.shutdown()


def _warm_up(workers: int) -> None:
    """Have processes start and import, as many as there will be parts. What goes wrong the parts will say."""
    ready = _a_cpu_each(be_ready)
    with _stoppable():
        ray.wait([ready.remote() for _ in range(workers)], num_returns=workers, timeout=WARM_UP_S)


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and SIGTERM are a stop."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        raise Stopped("it was interrupted") from None


def run_on_ray(job: Job, workers: int) -> None:
    """Do what is left of a stage. Ray has been started.

    Raises:
        Stopped: the run ends; see `work`.
        SetupError: Ray could not do its part.
    """
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        with _stoppable():
            prefill(job)
            for stopped in _all(job, workers):
                if stopped:
                    raise Stopped(stopped)
    except ray.exceptions.RayError as error:
        raise _ours(error) from error


def _all(job: Job, workers: int) -> list[str]:
    """Why each part stopped; nothing where it is done. If one fails, or this is interrupted, the others are ended."""
    part = _a_cpu_each(do_part)
    money = moneys(job, workers)
    parts: list[ray.ObjectRef[str]] = []
    try:
        for number in range(workers):
            parts.append(part.remote(job, number, workers, money[number]))
        return ray.get(parts)
    except BaseException:
        with contextlib.suppress(ray.exceptions.RayError):
            _end(parts)
        raise


def _a_cpu_each(function: Callable[..., Any]) -> Any:
    """As tasks of Ray, on all nodes."""
    return ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(function)


def _end(parts: list[ray.ObjectRef[str]]) -> None:
    """As by Ctrl-C: they send nothing any more and wait for what is on its way. A second Ctrl-C does not wait."""
    try:
        _cancel(parts, None)
    except KeyboardInterrupt:
        for one in _cancel(parts, SECOND_S):
            ray.cancel(one, force=True)


def _cancel(parts: list[ray.ObjectRef[str]], timeout: float | None) -> list[ray.ObjectRef[str]]:
    """Interrupt the parts, and wait for them; those that have not ended."""
    for one in parts:
        ray.cancel(one)
    return ray.wait(parts, num_returns=len(parts), timeout=timeout)[1] if parts else []


def _ours(error: BaseException) -> PvRlError:
    """What went wrong in a process of Ray's, as an error of ours."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PvRlError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    last = (str(error).strip() or type(error).__name__).splitlines()[-1]
    return SetupError(
        f"Ray could not do its part: {last:.1000}. Its logs are in the session's folder, /tmp/ray"
    )
