"""Points of a run, read from its metrics log while it grows. The TRL program writes the log as verl does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pv_runs.growing_file import Tail
from pv_runs.metrics_log import parse_line

__all__ = ["HELD_OUT", "Point", "follow"]

HELD_OUT = {"right": "val-core/lab/right/acc/mean@1", "wrong": "val-core/lab/wrong/acc/mean@1"}
"""verl's names of the held-out accuracies: on right proofs and on wrong ones (data sources of the lab)."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One line of the log: a step, with held-out accuracies where the step was validated."""

    step: int
    reward: float | None
    """Mean reward of the step's responses, in [0, 1]; None before the first step."""
    length: float | None
    """Mean response length, tokens."""
    seconds: float | None
    """Wall time of the step."""
    right: float | None
    """Held-out accuracy on right proofs."""
    wrong: float | None
    """Held-out accuracy on wrong proofs."""

    @property
    def balanced(self) -> float | None:
        """Mean of the two held-out accuracies, which an accept-all verifier has at 0.5."""
        return None if self.right is None or self.wrong is None else (self.right + self.wrong) / 2


def read_point(line: bytes) -> Point:
    """Read one line, `{"step": 3, "data": {"critic/score/mean": ...}}`."""
    step, data = parse_line(line)
    return Point(
        step=step,
        reward=data.get("critic/score/mean"),
        length=data.get("response_length/mean"),
        seconds=data.get("timing_s/step"),
        right=data.get(HELD_OUT["right"]),
        wrong=data.get(HELD_OUT["wrong"]),
    )


def follow(path: Path) -> Iterator[Point | None]:
    """Yield each point as it is written, and None when there is nothing new for now. Endless: the caller stops."""
    file = Tail(path)
    while True:
        with contextlib.suppress(FileNotFoundError):
            yield from map(read_point, file.look())
        yield None
