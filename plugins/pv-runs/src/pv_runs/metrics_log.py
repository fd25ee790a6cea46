"""Metrics log of a run: the JSON lines of verl's `file` logger, one file for each attempt."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pv_judge.files import load_json
from pv_rl.errors import DataError
from pv_runs import metric_names
from pv_runs.former_names import present_name
from pv_runs.growing_file import LONGEST_LINE
from pv_runs.measures import BALANCED, HELD_OUT, KEYS

__all__ = [
    "LONGEST_LINE",
    "Collector",
    "Log",
    "Series",
    "attempt_of",
    "find_metrics",
    "parse_line",
    "read_log",
]


LARGEST = 1e300
"""A larger number overflows in sums and figures, and counts as none."""
FILE = re.compile(r"metrics(?:-([0-9]{1,9}))?\.jsonl")
VALIDATED = ("val-core/", "val-aux/", metric_names.HELD_OUT)
"""Beginnings of the names in a line of a validation alone, which a resumed run logs before it trains a step."""


def read_log(folder: Path, wanted: Callable[[str], bool] = KEYS.__contains__) -> Log:
    """Read `metrics.jsonl`, `metrics-2.jsonl` and so on, line by line, and keep only what is needed.

    Raises:
        DataError: a line is not what verl writes. A last line without its end is left out: it was being written.
    """
    collector = Collector(wanted)
    for path in find_metrics(folder):
        collector.begin_file(attempt_of(path))
        for step, data in _lines(path):
            try:
                collector.add(step, data)
            except DataError as error:
                raise DataError(f"{path}: {error}") from error
    return collector.log()


def find_metrics(folder: Path) -> list[Path]:
    """Regular files, so that nobody waits for a pipe; by their number, the first one's being 1."""
    matches = [(FILE.fullmatch(path.name), path) for path in folder.iterdir()]
    numbered = [(int(match[1] or 1), path.name, path) for match, path in matches if match and path.is_file()]
    return [path for _, _, path in sorted(numbered)]


def attempt_of(path: Path) -> int:
    """The attempt that wrote a metrics file; 1 for verl's log by any other name."""
    match = FILE.fullmatch(path.name)
    return int(match[1] or 1) if match else 1


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            if not line.strip():
                continue
            try:
                if len(line) > LONGEST_LINE:
                    raise ValueError(f"it is longer than {LONGEST_LINE} bytes")
                yield parse_line(line)
            except ValueError as error:
                if not line.endswith(b"\n") and len(line) <= LONGEST_LINE:
                    return
                raise DataError(
                    f'line {number} of {path} is not what verl writes, {{"step": 3, "data": {{...}}}}: '
                    f"{error or type(error).__name__}. Remove the line, or move the run out of the folder"
                ) from error


def parse_line(line: bytes) -> tuple[int, dict[str, Any]]:
    """The step and the numbers of one line, under the names of today (`pv_runs.former_names`).

    Raises:
        ValueError: it is not what verl writes.
    """
    record = load_json(line)
    step = record.get("step") if isinstance(record, dict) else None
    if type(step) is not int or not 0 <= step <= 10**12:
        raise ValueError("there is no step, a whole number from 0")
    data = record.get("data")
    if not isinstance(data, dict):
        raise ValueError("there is no object of data")
    return step, {present_name(key): value for key, value in data.items()}


Series = dict[int, float]
"""A value by step, in the order of the steps; NaN where the run logged what is no finite number."""

MOST_STEPS = 1_000_000
VALIDATION = re.compile(r"val-core/((?:.*/)?(right|wrong))/acc/mean@[0-9]+", re.DOTALL)
"""verl's accuracy of a data source, the mean over N responses a prompt; ours are named for the class they hold."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """What is needed of a run's metrics."""

    series: dict[str, Series]
    """By verl's key, for those of `KEYS`; and the held-out accuracies by the names `HELD_OUT` and `BALANCED`."""
    last_step: int | None
    """The last step that was logged; None before the first."""
    sources: tuple[str, ...]
    """Data sources that the held-out accuracies are of."""
    starts: Mapping[int, int] = field(default_factory=dict)
    """By attempt, the first step that it trained; without attempts of which later ones have repeated all steps."""


class Collector:
    """Takes in the lines of a run one after another and keeps what is needed.

    A resumed run goes on from a checkpoint. From the first step of a later file on, that file holds: it wins for equal
    steps, and steps after it that only an earlier file has are of a policy that was thrown away.

    Example: steps 1 to 12, then a file with 11: the run is at step 11, and 11 is the later file's.

    Args:
        wanted: whether to keep a key of verl's; the held-out accuracies are kept whatever it says.
    """

    def __init__(self, wanted: Callable[[str], bool] = KEYS.__contains__) -> None:
        self._wanted = wanted
        self._series: dict[str, Series] = {}
        self._sources: dict[str, None] = {}
        self._steps: set[int] = set()
        self._first = False
        self._attempt, self._starts, self._starting = 1, dict[int, int](), True

    def begin_file(self, attempt: int) -> None:
        """The next line is the first of a further file, that of `attempt`."""
        self._first = self._starting = True
        self._attempt = attempt

    def add(self, step: int, data: dict[str, Any]) -> None:
        """Take in one line.

        Raises:
            DataError: there are too many steps.
        """
        if self._first:
            self._steps = {known for known in self._steps if known <= step}
            self._starts = {attempt: first for attempt, first in self._starts.items() if first <= step}
            self._series = {
                key: {s: v for s, v in one.items() if s <= step} for key, one in self._series.items()
            }
            self._first = False
        if self._starting and not (data and all(key.startswith(VALIDATED) for key in data)):
            kept = {attempt: first for attempt, first in self._starts.items() if first < step}
            self._starts, self._starting = {**kept, self._attempt: step}, False
        self._steps.add(step)
        if len(self._steps) > MOST_STEPS:
            raise DataError(f"there are more than {MOST_STEPS} steps; give the log of one run")
        for key, value in _needed(data, self._wanted, self._sources):
            self._series.setdefault(key, {})[step] = value

    def log(self) -> Log:
        """What has been taken in."""
        ordered = {key: dict(sorted(one.items())) for key, one in self._series.items() if one}
        right, wrong = (ordered.get(key, {}) for key in HELD_OUT.values())
        if both := {step: (right[step] + wrong[step]) / 2 for step in right if step in wrong}:
            ordered[BALANCED] = both
        return Log(
            series=ordered,
            last_step=max(self._steps, default=None),
            sources=tuple(self._sources),
            starts=dict(self._starts),
        )


def _needed(
    data: dict[str, Any], wanted: Callable[[str], bool], sources: dict[str, None]
) -> Iterator[tuple[str, float]]:
    """Values by our keys; a class's accuracy is the mean over its data sources, which are noted in `sources`."""
    classes: dict[str, list[float]] = {}
    for key, value in data.items():
        if wanted(key) and (known := _finite(value)) is not None:
            yield key, known
        elif (match := VALIDATION.fullmatch(key)) and (known := _finite(value)) is not None:
            classes.setdefault(match[2], []).append(known)
            if len(sources) < 100:
                sources[match[1]] = None
    for name, values in classes.items():
        yield HELD_OUT[name], sum(values) / len(values)


def _finite(value: Any) -> float | None:
    """A number; NaN for one that is not finite, which verl's logger writes as null; None for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) and abs(value) <= LARGEST else math.nan
    except OverflowError:  # an integer with more digits than a float has room for
        return math.nan
