"""How long the rest will take, from the runs that this command has made."""

from __future__ import annotations

__all__ = ["Pace", "said"]


class Pace:
    """Measures what a run takes to start and what a step takes, and says how much is left.

    Example: a run begins at 0 s, is at step 0 at 40 s and at step 10 at 100 s: 6 s a step. With 20 steps of it to go
    and one run of 30 steps after it, 20 x 6 + 40 + 30 x 6 = 340 s are left.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._starts: list[float] = []
        self._spans: list[tuple[int, float]] = []
        """Steps and seconds between the first and the last line of each run."""
        self._began = 0.0
        self._first: tuple[int, float] | None = None
        self._step = 0

    def begin(self, now: float) -> None:
        """A run begins. `now`: seconds of any clock that only moves forward."""
        self._began, self._first, self._step = now, None, 0

    def at(self, step: int, now: float) -> None:
        """The run has logged a step; its first line comes after Ray, the workers and the validation before training."""
        self._step = step
        if self._first is None:
            self._first = (step, now)
            self._starts.append(now - self._began)
            self._spans.append((0, 0.0))
        else:
            self._spans[-1] = (step - self._first[0], now - self._first[1])

    def left(self, runs_after: int) -> float | None:
        """Seconds until all runs have ended, `runs_after` of them after this one; None before a step was timed."""
        steps, seconds = sum(one for one, _ in self._spans), sum(one for _, one in self._spans)
        if not steps:
            return None
        a_step, a_start = seconds / steps, sum(self._starts) / len(self._starts)
        here = max(0, self._steps - self._step) * a_step
        return here + (0 if self._first else a_start) + runs_after * (a_start + self._steps * a_step)


def said(seconds: float) -> str:
    """A length of time for people: `50 s`, `12 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
