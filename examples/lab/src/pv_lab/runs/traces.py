"""Trace statistics by step, read from the rollouts that verl writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pv_lab.evaluate import SHORT
from pv_lab.trace_shares import BARE, KINDS, repetitive
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict
from pv_runs.metrics_log import Series

__all__ = ["SHARES", "describe_step", "read_traces"]

SHARES = tuple(KINDS)


def read_traces(folder: Path, steps: int, max_length: int) -> dict[str, Series]:
    """Shares of traces by kind, and the mean length in tokens, for each step of which all traces are there.

    Args:
        folder: with `STEP.jsonl`, the traces of a step.
        steps: the last step to read; what a run that was killed did beyond its last checkpoint is not of its policy.
        max_length: tokens at which verl cuts a response.

    Raises:
        DataError: a line is not what verl writes.
    """
    series: dict[str, Series] = {}
    for step in range(1, steps + 1):
        traces = _read_step(folder / f"{step}.jsonl")
        if traces:
            for name, value in describe_step(traces, max_length).items():
                series.setdefault(name, {})[step] = value
    return series


def describe_step(traces: Sequence[str], max_length: int) -> dict[str, float]:
    """The shares (`SHARES`) and the mean length, `length`.

    A word of the lab is a token, and the end mark, which the text does not show, is one more unless the trace was cut.

    Example: `### True` has 3 tokens: it is short and bare. 128 words at a limit of 128 are cut off.
    """
    counted = Counter[str]()
    tokens = 0
    for trace in traces:
        words = trace.split()
        cut_off = len(words) >= max_length
        length = len(words) + (not cut_off)
        tokens += length
        counted.update(
            short=length <= SHORT,
            bare=length <= BARE and parse_verdict(trace) is not None,
            cut_off=cut_off,
            repetitive=repetitive(words),
        )
    return {name: counted[name] / len(traces) for name in SHARES} | {"length": tokens / len(traces)}


def _read_step(path: Path) -> list[str]:
    """The traces, none of a step that is not written to its end."""
    if not path.is_file():
        return []
    traces: list[str] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                traces.append(_output(json.loads(line)))
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    return []
                raise DataError(
                    f'line {number} of {path} is not what verl writes, {{"output": "...", ...}}: {error}. Take the '
                    "file out, or the run out of the folder"
                ) from error
    return traces


def _output(row: Any) -> str:
    output = row.get("output") if isinstance(row, dict) else None
    if not isinstance(output, str):
        raise ValueError("there is no text `output`")
    return output
