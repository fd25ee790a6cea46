"""What a process of Ray's does of a stage. Not in `on_ray`: to import Ray Data takes a second, and no part needs it."""

from __future__ import annotations

import asyncio

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Job, pending
from pv_data.run.worker import work

__all__ = ["be_ready", "do_part"]


def be_ready() -> None:
    """Import what every part needs. Arrow imports pandas, where it is installed, with the first row that is written."""
    import pyarrow as pa

    from pv_data.run import generating, judging  # noqa: F401

    pa.array([])


def do_part(job: Job, part: int, of: int, money: float) -> str:
    """Do one of `of` parts with so much of the money; why it stopped, nothing where it is done."""
    try:
        asyncio.run(work(job, pending(job, part, of), part=part, of=of, money=money, at_once=job.at_once(of)))
    except Stopped as stopped:
        return str(stopped) or "it was stopped"
    return ""
