"""Several things at a time: all are waited for, and of what went wrong the cause is raised, not its consequence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from pv_data.asking.asker import Stopped

__all__ = ["cause", "together"]

T = TypeVar("T")


async def together(tasks: Iterable[Awaitable[T]]) -> list[T]:
    """What all of them give. If one fails the others are waited for: what they have paid for is kept.

    Raises:
        BaseException: see `cause`.
    """
    results = await asyncio.gather(*tasks, return_exceptions=True)
    if error := cause([one for one in results if isinstance(one, BaseException)]):
        raise error
    return [one for one in results if not isinstance(one, BaseException)]


def cause(errors: Iterable[BaseException]) -> BaseException | None:
    """The first that is neither a stop nor a cancellation, for these follow from it; else the first stop."""
    found = sorted(errors, key=_follows)
    return found[0] if found else None


def _follows(error: BaseException) -> int:
    return 2 if isinstance(error, asyncio.CancelledError) else int(isinstance(error, Stopped))
