"""Ray executor: a stage's worker processes as Ray tasks, on one machine or on a cluster with a shared folder.

Each task does its shard of the chunks, as a process of the local executor does. Ray restarts a task whose process or
node is lost, three times; it continues where it was. `RAY_ADDRESS` names a cluster; without it Ray starts on this
machine. Local models are served on this machine, as for the local executor.

The shards are not a Ray Data dataset: its executor adds tasks to a stage a few at a time, so that the last of eight
shards began some seconds after the first (measured in benchmarks/README.md, judging_pipeline.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import ray
import ray.exceptions

from pv_data.asking.asker import Stopped
from pv_data.run.stage import Job, budget_shares
from pv_data.run.worker import run_shard
from pv_judge.processes import NO_TELEMETRY, interruptible
from pv_rl.errors import PvRlError, SetupError

__all__ = ["ray_started", "run_on_ray"]


RETRIES = 3
"""Restarts of a worker whose process or node is lost."""
WARM_UP_S = 30.0
"""Seconds that a start waits for Ray's processes; the cluster may have no room for them yet."""
SECOND_S = 5.0
"""Seconds that a worker may take to end after a second Ctrl-C; then Ray kills it."""


@contextlib.contextmanager
def ray_started(workers: int) -> Iterator[None]:
    """Ray and its processes until the block ends, unless Ray runs already: about ten seconds, once for all stages."""
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if not os.environ.get("RAY_ADDRESS"):
        # `local`: not another Ray of this machine, which takes no `num_cpus`. A worker takes a logical CPU.
        quiet |= {"address": "local", "num_cpus": workers, "include_dashboard": False}
    os.environ.update({**NO_TELEMETRY, **os.environ})  # which Ray's processes inherit
    ray.init(**quiet)
    try:
        _warm_up(workers)
        yield
    finally:
        ray.shutdown()


def _warm_up(workers: int) -> None:
    """Have as many processes start and import as there will be workers. An error will show in the workers."""
    ready = _a_cpu_each(_import_stages)
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
        Stopped: the run ends; see `pv_data.run.worker.run_shard`.
        SetupError: Ray failed.
    """
    try:
        with _stoppable():
            if job.served:
                _check_nodes(job)
            for stopped in _all(job, workers):
                if stopped:
                    raise Stopped(stopped)
    except ray.exceptions.RayError as error:
        raise _ours(error) from error


def _check_nodes(job: Job) -> None:
    """A local model is served on 127.0.0.1, which the tasks of another node cannot reach."""
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    if nodes > 1:
        raise SetupError(
            f"executor=ray asks local models on one machine only, and Ray has {nodes} nodes. Serve "
            f"{', '.join(sorted(job.served))} yourself (vllm serve) and give the endpoint, or use one machine"
        )


def _all(job: Job, workers: int) -> list[str]:
    """Why each worker stopped; empty for one that is done. If one fails, or the driver is interrupted, all end."""
    part = _a_cpu_each(_run_shard)
    money = budget_shares(job, workers)
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


def _import_stages() -> None:
    """Arrow imports pandas, if it is installed, with the first row that is written."""
    import pyarrow as pa

    from pv_data.run import generate, judge  # noqa: F401

    pa.array([])


def _run_shard(job: Job, part: int, of: int, money: float) -> str:
    """Why the worker stopped; empty if it is done. As a text: Ray would wrap an exception."""
    try:
        asyncio.run(run_shard(job, part, of, money))
    except Stopped as stopped:
        return str(stopped) or "it was stopped"
    return ""


def _end(parts: list[ray.ObjectRef[str]]) -> None:
    """Stop the workers as by Ctrl-C: they send no more requests and wait for those on their way. A second Ctrl-C does
    not wait."""
    try:
        _cancel(parts, None)
    except KeyboardInterrupt:
        for one in _cancel(parts, SECOND_S):
            ray.cancel(one, force=True)


def _cancel(parts: list[ray.ObjectRef[str]], timeout: float | None) -> list[ray.ObjectRef[str]]:
    """Interrupt the workers and wait for them. Returns those that have not ended."""
    for one in parts:
        ray.cancel(one)
    return ray.wait(parts, num_returns=len(parts), timeout=timeout)[1] if parts else []


def _ours(error: BaseException) -> PvRlError:
    """The error of ours that a Ray process raised, or a `SetupError` with Ray's last line."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PvRlError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    last = (str(error).strip() or type(error).__name__).splitlines()[-1]
    return SetupError(f"Ray failed: {last:.1000}. Its logs are in the session's folder, /tmp/ray")
