"""The executor `ray`: a stage's processes as tasks of Ray Data, on one machine or on a cluster with a shared folder.

Each task does its part of the chunks, as a process of the executor `local` does; one whose node is lost is started
again by Ray, and goes on where it was. `RAY_ADDRESS` names a cluster; without it Ray starts on this machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import Any

import ray
import ray.data

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Job, pending
from pv_data.run.worker import work

__all__ = ["run_on_ray"]


def run_on_ray(job: Job, workers: int) -> None:
    """Do what is left of a stage.

    Raises:
        Stopped: the run ends; see `work`.
    """
    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers}
        ray.init(logging_level=logging.ERROR, log_to_driver=False, **options)
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        parts = ray.data.range(workers, override_num_blocks=workers)
        ends = parts.map_batches(partial(_part, job=job, of=workers), batch_size=1, num_cpus=1).take_all()
    finally:
        if started:
            ray.shutdown()
    for end in ends:
        if end["stopped"]:
            raise Stopped(end["stopped"])


def _part(batch: Any, job: Job, of: int) -> dict[str, list[str]]:
    """Why each part of a batch, which is one, stopped; nothing where it is done."""
    ends = []
    for part in batch["id"].tolist():
        try:
            asyncio.run(work(job, pending(job, part, of), part=part, of=of, at_once=job.at_once(of)))
            ends.append("")
        except Stopped as stopped:
            ends.append(str(stopped) or "it was stopped")
    return {"stopped": ends}
