"""What may be taken in any 60 seconds, kept by a log of what was taken in the last 60."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from pv_judge.config import Limits

__all__ = ["Charge", "Window"]

MINUTE_S = 60.0


@dataclass(eq=False)
class Charge:
    """What a request takes of a minute's allowance."""

    at: float
    tokens: float


class Window:
    """The requests and tokens of one endpoint. `now` is in seconds, by any clock."""

    def __init__(self, limits: Limits) -> None:
        self._requests = limits.requests_per_minute or math.inf
        self._tokens = limits.tokens_per_minute or math.inf
        self._log: deque[Charge] = deque()
        self._sum = 0.0

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._requests < math.inf or self._tokens < math.inf

    def wait_s(self, tokens: float, now: float) -> float:
        """Seconds until it is worth while to look again; 0: there is room for a request of `tokens`."""
        while self._log and self._log[0].at <= now - MINUTE_S:
            self._sum -= self._log.popleft().tokens
        if not self._log:
            return 0.0  # even for a request above the limit, which would wait for ever else
        room = len(self._log) + 1 <= self._requests and self._sum + tokens <= self._tokens
        return 0.0 if room else self._log[0].at + MINUTE_S - now

    def take(self, tokens: float, now: float) -> Charge:
        """Charge a request that goes now."""
        charge = Charge(now, tokens)
        if self.limited:
            self._log.append(charge)
            self._sum += tokens
        return charge

    def correct(self, charge: Charge, tokens: float, now: float) -> None:
        """Replace an estimate by what was counted."""
        if self.limited and charge.at > now - MINUTE_S:
            self._sum += tokens - charge.tokens
            charge.tokens = tokens

    def remove(self, charge: Charge) -> None:
        """Take back what was not used."""
        if charge in self._log:
            self._log.remove(charge)
            self._sum -= charge.tokens
