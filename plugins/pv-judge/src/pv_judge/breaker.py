"""Circuit breaker of one endpoint: opens after several failures in a row, and closes when a probe succeeds."""

from __future__ import annotations

import time
from collections.abc import Callable

from pv_judge.answer import FailureKind
from pv_judge.config import Breaker

__all__ = ["REFUSED", "SERVER_FAILED", "CircuitBreaker", "Permit"]

SERVER_FAILED: frozenset[FailureKind] = frozenset(
    {"connect", "timeout", "reset", "server_error", "bad_response", "too_large"}
)
"""Kinds of failure that count. After any other but `REFUSED`, for example 429, the server is known to work."""
REFUSED: frozenset[FailureKind] = frozenset({"authentication", "quota"})
"""Kinds that every request to the endpoint would share: the first opens the breaker."""


class Permit:
    """Permission to send one request. Call `ended` or `dropped` once."""

    def __init__(self, breaker: CircuitBreaker, era: int, *, probe: bool) -> None:
        self._breaker = breaker
        self._era = era
        self._probe = probe

    def ended(self, failure: FailureKind | None) -> None:
        """The request ended: with an answer if `failure` is None."""
        self._breaker._ended(self._era, failure)

    def dropped(self) -> None:
        """The request was not sent, or was cancelled: the server's state is unknown, and another may probe it."""
        if self._probe:
            self._breaker._probe_again(self._era)


class CircuitBreaker:
    """The breaker of one endpoint: closed, or open with a probe every `probe_after_s`.

    Probes do not wait for each other, so one that hangs does not hide that the server is back. After a refused request
    (`REFUSED`) the first probe goes at once: a firewall may have objected to that one text.
    """

    def __init__(
        self,
        settings: Breaker,
        *,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`changed` is called when the wait gets shorter, or is useless (`refused`)."""
        self.opened = 0
        """Times that it opened."""
        self.probes = 0
        """Requests that were sent while it was open."""
        self._settings = settings
        self._clock = clock
        self._changed = changed
        self._failures = 0  # in a row
        self._refusals = 0  # in a row
        self._probe_at: float | None = None  # None: closed
        self._era = (
            0  # counts openings and closings: the end of a request that was sent before one is ignored
        )

    @property
    def closed(self) -> bool:
        """Whether every request may be sent."""
        return self._probe_at is None

    @property
    def refused(self) -> bool:
        """Whether two requests in a row were refused, so waiting for this endpoint is useless."""
        return self._refusals >= 2

    def wait_s(self) -> float:
        """Seconds until a request may be sent."""
        return 0.0 if self._probe_at is None else max(0.0, self._probe_at - self._clock())

    def enter(self) -> Permit | None:
        """A permit to send a request now, or None."""
        if self.wait_s() > 0:
            return None
        if self.closed:
            return Permit(self, self._era, probe=False)
        self._probe_at = self._clock() + self._settings.probe_after_s
        self.probes += 1
        return Permit(self, self._era, probe=True)

    def _ended(self, era: int, failure: FailureKind | None) -> None:
        if failure in REFUSED:  # also of a request that was sent before it opened
            self._refuse()
            return
        if era != self._era:
            return
        self._refusals = 0
        if failure not in SERVER_FAILED:
            self._failures = 0
            if not self.closed:
                self._probe_at = None
                self._era += 1
                self._changed()
        elif self.closed:
            self._failures += 1
            if self._failures >= self._settings.failures:
                self._open(self._settings.probe_after_s)

    def _refuse(self) -> None:
        self._refusals += 1
        if self.closed:
            self._open(0.0)
        elif self._refusals == 1:
            self._probe_at = self._clock()
        else:
            self._probe_at = self._clock() + self._settings.probe_after_s
        self._changed()

    def _open(self, probe_after_s: float) -> None:
        self._probe_at = self._clock() + probe_after_s
        self._era += 1
        self.opened += 1

    def _probe_again(self, era: int) -> None:
        if era == self._era:
            self._probe_at = self._clock()
            self._changed()
