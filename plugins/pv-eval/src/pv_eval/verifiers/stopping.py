"""Ctrl-C while questions are under way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

__all__ = ["stopping"]


@contextlib.contextmanager
def stopping(ask: Callable[[str], None], at_once: Callable[[], object]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM asks to stop; a second leaves at once."""
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            at_once()
        asked = True
        ask("it was stopped")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            loop.add_signal_handler(number, stop)
        handled = True
    except (ValueError, RuntimeError, NotImplementedError):  # not the main thread, or no Unix
        handled = False
    try:
        yield
    finally:
        for number in numbers if handled else ():
            loop.remove_signal_handler(number)  # which leaves the default and not what was there
            signal.signal(number, before[number])
