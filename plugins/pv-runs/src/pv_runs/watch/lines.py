"""A line a step, for output that is no terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pv_runs.watch.frame import Frame, show

__all__ = ["new_lines"]

SAID = {
    "reward": "reward",
    "held out, right proofs": "held-out right",
    "held out, wrong proofs": "held-out wrong",
    "training, right proofs": "right",
    "training, wrong proofs": "wrong",
    "response length": "length",
    "no verdict": "no verdict",
    "vetoed": "vetoed",
    "abstained": "abstained",
    "time": "seconds",
}
"""What a line says, by the row's title."""


def new_lines(frame: Frame, after: int) -> Iterator[tuple[int, str]]:
    """The steps after `after`, each with its line."""
    rows = [row for section in frame.sections for row in section.rows if row.title in SAID and row.rank < 3]
    by_step: dict[int, list[str]] = {}
    for row in rows:
        for step, value in zip(row.steps, row.values, strict=True):
            if step > after:
                by_step.setdefault(step, []).append(f"{SAID[row.title]} {show(value, row.form)}")
    of = f" of {frame.total}" if frame.total else ""
    for step in sorted(by_step):
        yield step, "  ".join([f"step {step}{of}", *by_step[step]])
