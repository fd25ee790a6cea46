"""Rate-limited log of judge failures: it prints changes of kind or HTTP status, not every row."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from pv_judge.answer import JudgeFailure

__all__ = ["FailureLog"]

logger = logging.getLogger("pv_rl")

LINES_A_MINUTE = 10
REMIND_S = 600.0


class FailureLog:
    """Prints a failure if its kind or status differs from the last one printed, or after ten minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: deque[float] = deque([-float("inf")], maxlen=LINES_A_MINUTE)
        self._last: tuple[str, int | None] | None = None
        self._unsaid = 0

    def add(self, failure: JudgeFailure) -> None:
        """Print a failure, or count it for the next line."""
        now, this = self._clock(), (failure.kind, failure.status)
        due = this != self._last or now - self._lines[-1] >= REMIND_S
        if not due or (len(self._lines) == LINES_A_MINUTE and now - self._lines[0] < 60):
            self._unsaid += 1
            return
        more = f" ({self._unsaid} failures since the last such line)" if self._unsaid else ""
        logger.warning("judge failure of kind %s%s: %s", failure.kind, more, failure)
        self._lines.append(now)
        self._last, self._unsaid = this, 0
