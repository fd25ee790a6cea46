"""Progress of a run: prints a line for each step, from verl's metrics file."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from pv_judge.pages.text import visible
from pv_runs import metric_names
from pv_runs.growing_file import Replaced, Tail
from pv_runs.metrics_log import parse_line

__all__ = ["Progress", "say"]

SHOWN = (
    ("loss", ("train/loss",), "{:.4f}"),
    ("reward", (metric_names.SCORE, "critic/score/mean"), "{:.3f}"),
    ("length", ("response_length/mean",), "{:.0f}"),
    ("vetoed", (metric_names.VETOED,), "{:.1%}"),
    ("abstained", (metric_names.ABSTAINED,), "{:.1%}"),
    ("seconds", ("timing_s/step",), "{:.1f}"),
)
"""What a line says: its name, verl's names of the number (the first that is there), and its form."""
MEAN = re.compile(r"val-core/(.+)/[^/]+/mean@[0-9]+", re.DOTALL)
"""verl's accuracy of a data source, the mean and not the best of several answers."""


def say(console: Console, text: str) -> None:
    """Print plain text, control characters as escapes; a terminal that is gone ends no run."""
    with contextlib.suppress(OSError):
        console.print(visible(text), markup=False, highlight=False)


class Progress:
    """Reads a metrics file as it grows, and prints each step once. What cannot be read is left out."""

    def __init__(self, path: Path, steps: int | None, console: Console) -> None:
        self._steps, self._console = steps, console
        self._tail = Tail(path)
        self.last_step = 0

    @property
    def began(self) -> bool:
        """Whether verl has written anything, a validation before the first step included."""
        return self._tail.began

    def complete(self, *, asked: bool = False) -> bool:
        """Whether the last step is there; where nobody knows which that is, whether the run was not asked to stop."""
        return not asked if self._steps is None else self.last_step >= self._steps

    def look(self) -> None:
        """Print what has come since the last look."""
        try:
            for line in self._tail.look():
                with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
                    step, data = parse_line(line)
                    self.last_step = max(self.last_step, step)
                    say(self._console, self._line(step, data))
        except Replaced:
            self._tail = Tail(self._tail.path)
        except OSError:
            pass  # not there yet

    def _line(self, step: int, data: Mapping[str, Any]) -> str:
        said = [f"step {step}" + (f" of {self._steps}" if self._steps else "")]
        for name, keys, form in SHOWN:
            value = next((data[key] for key in keys if key in data), None)
            if isinstance(value, int | float) and math.isfinite(value):
                said.append(f"{name} {form.format(value)}")
        found = ((MEAN.fullmatch(key), value) for key, value in data.items())
        said += [f"{match[1]} {value:.3f}" for match, value in found if match]
        return "  ".join(said)
