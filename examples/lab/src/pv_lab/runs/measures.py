"""Measures of the lab beside those of `pv_runs.report`, and the selection that its report compares."""

from __future__ import annotations

from pv_lab.runs.traces import SHARES
from pv_runs.measures import MEASURES, Measure

__all__ = ["LENGTH", "STAGED", "TRACES", "trace_key"]


def trace_key(name: str) -> str:
    """The name under which a log keeps a series of the traces, beside verl's keys."""
    return f"traces/{name}"


TRACES = tuple(
    Measure(
        name=f"traces_{name}",
        title=f"{name.replace('_', ' ')} traces",
        unit="share of responses",
        keys=(trace_key(name),),
        panel=True,
    )
    for name in SHARES
)
_BY_NAME = {measure.name: measure for measure in MEASURES}
LENGTH = _BY_NAME["length"]
STAGED = (
    LENGTH,
    _BY_NAME["reward"],
    _BY_NAME["held_out_right"],
    _BY_NAME["held_out_wrong"],
    _BY_NAME["held_out_balanced"],
    *TRACES,
)
"""Measures that the report gives at the start, the middle and the end."""
