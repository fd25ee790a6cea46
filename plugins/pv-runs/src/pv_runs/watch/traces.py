"""Last malformed traces of a run: those vetoed in the judge's ledger, or those that the rules find in rollouts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pv_judge.files import load_json
from pv_judge.ledger.row import LedgerRow
from pv_judge.pages.blocks import Piece
from pv_judge.pages.excerpt import cut
from pv_judge.pages.text import one_line
from pv_rl.errors import DataError, PluginError
from pv_rl.hookspecs import Span
from pv_rl.rewards import find_anomalies
from pv_runs.growing_file import last_lines
from pv_runs.watch.frame import Trace
from pv_runs.watch.places import Places

__all__ = ["Traces", "excerpt"]

SHOWN = 4
MOST = 4 * 2**20
"""Bytes from the end of a file that are looked at."""
PATIENCE = 1.0
"""Seconds that the rules may take for a look."""
LONGEST = 200_000
"""Characters of a trace; a longer one is not looked at by the rules."""
BACK = 5
"""Files of rollouts that are looked at, the last one first."""
BEFORE, AFTER, EVIDENCE = 80, 60, 220
"""Characters that are shown around the evidence, and of it."""
ROW_GROUP = 64 * 2**20
"""Bytes of a Parquet row group; a larger one is not read."""


class Traces:
    """Looks again only where a file has changed."""

    def __init__(self) -> None:
        self._found: list[Trace] = []
        self._source = ""
        self._seen: object = None

    def look(self, places: Places) -> tuple[list[Trace], str]:
        """The last malformed traces, the latest first, and what they are."""
        with contextlib.suppress(OSError):
            ledgers = sorted([*places.ledger.glob("journal-*.jsonl"), *places.ledger.glob("part-*.parquet")])
            newest = max(ledgers, key=lambda path: path.stem.partition("-")[2], default=None)
            files = [newest] if newest is not None else _last_rollouts(places.rollouts)
            state = [(path, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
            if files and state != self._seen:
                found = _of_ledger(files[0]) if newest is not None else _of_rollouts(files)
                self._source = (
                    "vetoed, of the ledger" if newest is not None else "the rules find, in rollouts"
                )
                self._found, self._seen = found or self._found, state
        return self._found, self._source


def _of_ledger(path: Path) -> list[Trace]:
    found = []
    for row in _rows_of_part(path) if path.suffix == ".parquet" else _rows_of_journal(path):
        if row.decision == "vetoed":
            rules = list(dict.fromkeys(one_line(hit.rule[:60]) for hit in row.rules))
            reason = ", ".join(rules) or f"judge: {one_line((row.judge_text or 'it gave no reason')[:300])}"
            pieces = excerpt(row.trace, [(hit.start, hit.end) for hit in row.rules])
            _keep(found, Trace(step=row.step, reason=reason, pieces=pieces))
        if len(found) == SHOWN:
            break
    return found


def _keep(found: list[Trace], trace: Trace) -> None:
    """Add one that does not look like another: a collapsed policy writes the same trace again and again."""
    if all(trace.pieces != known.pieces for known in found):
        found.append(trace)


def _rows_of_journal(path: Path) -> Iterator[LedgerRow]:
    for line in last_lines(path, MOST):
        with contextlib.suppress(DataError, ValueError, TypeError, AttributeError):
            values = load_json(line)
            values.pop("row_id", None)
            yield LedgerRow.from_json(values)


def _rows_of_part(path: Path) -> Iterator[LedgerRow]:
    """Of the last row group."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:  # who writes ledgers has it; who looks on may not
        return
    try:
        with pq.ParquetFile(path) as part:
            last = part.num_row_groups - 1
            if last < 0 or part.metadata.row_group(last).total_byte_size > ROW_GROUP:
                return
            rows: list[dict[str, Any]] = part.read_row_group(last).to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        return
    for values in reversed(rows):
        values.pop("row_id", None)
        with contextlib.suppress(DataError, TypeError, ValueError, AttributeError):
            yield LedgerRow.from_json({**values, "time": values["time"].isoformat()})


def _last_rollouts(folder: Path) -> list[Path]:
    steps = [path for path in folder.glob("*.jsonl") if path.stem.isascii() and path.stem.isdigit()]
    return sorted(steps, key=lambda path: int(path.stem[:12]), reverse=True)[:BACK]


def _of_rollouts(files: list[Path]) -> list[Trace]:
    found: list[Trace] = []
    deadline = time.monotonic() + PATIENCE
    for path in files:
        with contextlib.suppress(OSError):
            for line in last_lines(path, MOST):
                if len(found) == SHOWN or time.monotonic() > deadline:
                    return found
                if (trace := _judge(line, int(path.stem[:12]))) is not None:
                    _keep(found, trace)
    return found


def _judge(line: bytes, step: int) -> Trace | None:
    """What the rules say of a line of verl's rollouts."""
    try:
        text = load_json(line)["output"]
        if not isinstance(text, str) or len(text) > LONGEST:
            return None
        anomalies = find_anomalies(text)
    except (ValueError, TypeError, KeyError, PluginError):
        return None
    if not anomalies:
        return None
    rules = ", ".join(dict.fromkeys(anomaly.rule for anomaly in anomalies))
    return Trace(step=step, reason=rules, pieces=excerpt(text, [(one.start, one.end) for one in anomalies]))


def excerpt(trace: str, spans: Sequence[Span]) -> list[Piece]:
    """A trace in one line, cut to what is around the evidence.

    Example: `excerpt("It holds. so so so so", [(10, 21)])` is `[("It holds. ", "text"), ("so so so so", "mark")]`.

    Args:
        trace: whole.
        spans: evidence, start and end in characters; the first one is shown. Without any, the trace's end is.
    """
    known = [(start, end) for start, end in spans if 0 <= start < end <= len(trace)]
    start, end = min(known, default=(0, 0))
    if not known:
        kept = [(len(trace) - BEFORE - EVIDENCE, len(trace))]
    elif end - start > EVIDENCE:
        kept = [(start - BEFORE, start + EVIDENCE // 2), (end - EVIDENCE // 2, end + AFTER)]
    else:
        kept = [(start - BEFORE, end + AFTER)]
    pieces: list[Piece] = [(one_line(text), kind) for text, kind in cut(trace, kept, (start, end))]
    for end in (0, -1):  # how much is left out there would take more room than it is worth
        if pieces and pieces[end][1] == "gap":
            pieces[end] = ("… " if end == 0 else " …", "gap")
    return pieces
