"""The lines of a run that verl's `file` logger writes: a file, and one more for each resume."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pv_rl.errors import DataError
from pv_runs.measures import KEYS
from pv_runs.report.collecting import Collector, Log, Series

__all__ = ["LONGEST_LINE", "Log", "Series", "find_metrics", "parse_line", "read_log"]

LONGEST_LINE = 4 * 2**20
"""Bytes. verl's lines have about 8,000."""
FILE = re.compile(r"metrics(?:-([0-9]{1,9}))?\.jsonl")


def read_log(folder: Path, wanted: Callable[[str], bool] = KEYS.__contains__) -> Log:
    """Read `metrics.jsonl`, `metrics-2.jsonl` and so on, line by line, and keep only what is needed.

    Raises:
        DataError: a line is not what verl writes. A last line without its end is left out: it was being written.
    """
    collector = Collector(wanted)
    for path in find_metrics(folder):
        collector.begin_file()
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


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            if not line.strip():
                continue
            try:
                if len(line) > LONGEST_LINE:
                    raise ValueError(f"it is longer than {LONGEST_LINE} bytes")
                yield parse_line(line)
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n") and len(line) <= LONGEST_LINE:
                    return
                raise DataError(
                    f'line {number} of {path} is not what verl writes, {{"step": 3, "data": {{...}}}}: '
                    f"{error or type(error).__name__}. Take the line out, or the run out of the folder"
                ) from error


def parse_line(line: bytes) -> tuple[int, dict[str, Any]]:
    """The step and the numbers of one line.

    Raises:
        ValueError: it is not what verl writes.
        RecursionError: it is nested too deeply to be.
    """
    record = json.loads(line)
    step = record.get("step") if isinstance(record, dict) else None
    if type(step) is not int or not 0 <= step <= 10**12:
        raise ValueError("there is no step, a whole number from 0")
    data = record.get("data")
    if not isinstance(data, dict):
        raise ValueError("there is no object of data")
    return step, data
