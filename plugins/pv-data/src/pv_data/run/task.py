"""A part of a stage as a task of Ray. Not in `on_ray`: to import Ray Data takes a second, and no task needs it."""

from __future__ import annotations

import asyncio

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Job, pending
from pv_data.run.worker import work

__all__ = ["do_part"]


def do_part(job: Job, part: int, of: int, money: float) -> str:
    """Do one of `of` parts with so much of the money; why it stopped, nothing where it is done."""
    try:
        asyncio.run(work(job, pending(job, part, of), part=part, of=of, money=money, at_once=job.at_once(of)))
    except Stopped as stopped:
        return str(stopped) or "it was stopped"
    return ""
