"""Result file: one CSV row for each part that was predicted and measured, written as soon as it is known."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(kw_only=True)
class Row:
    """What the plan says of one part of one run, and what was measured."""

    group: str
    """The run or process that measured it."""
    shape: str
    case: str
    part: str
    """`old log-probs`, `update`, `decoding`, ...; `memory: ...` in GiB, else seconds."""
    call: int
    """1: the first of its kind in this process."""
    held_out: bool
    """Not used to calibrate."""
    predicted: float | None
    measured: float
    detail: dict[str, Any] = field(default_factory=dict)
    """Tokens, micro-batches, operations: what a fit needs."""

    @property
    def ratio(self) -> float | None:
        return None if not self.predicted else self.measured / self.predicted


COLUMNS = [*(one.name for one in fields(Row) if one.name != "detail"), "ratio", "detail"]


def append(path: Path, rows: list[Row]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if new:
            writer.writeheader()
        for row in rows:
            values = {**asdict(row), "ratio": row.ratio, "detail": json.dumps(row.detail)}
            writer.writerow(
                {name: f"{one:.5g}" if isinstance(one, float) else one for name, one in values.items()}
            )
            shown = (
                "" if row.predicted is None else f" predicted {row.predicted:.3g}, ratio {row.ratio or 0:.2f}"
            )
            name = f"{row.group} | {row.case} | {row.part} #{row.call}"
            print(f"[{time.strftime('%H:%M:%S')}] {name}: {row.measured:.3g}{shown}", flush=True)


def read(path: Path) -> list[Row]:
    with path.open(newline="") as stream:
        return [
            Row(
                **{name: line[name] for name in ("group", "shape", "case", "part")},
                call=int(line["call"]),
                held_out=line["held_out"] == "True",
                predicted=float(line["predicted"]) if line["predicted"] else None,
                measured=float(line["measured"]),
                detail=json.loads(line["detail"]),
            )
            for line in csv.DictReader(stream)
        ]
