"""A long trace cut down to the place that matters."""

from __future__ import annotations

from collections.abc import Sequence

from pv_rl.hookspecs import Span
from pv_runs.watch.text import visible

__all__ = ["excerpt"]

BEFORE, AFTER = 80, 60
"""Characters of the trace around the evidence."""
EVIDENCE = 220
"""Characters of the evidence; of a longer one, its beginning and its end."""
GAP = " … "


def excerpt(trace: str, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Pieces of text, and whether they are evidence. All of them are safe to print.

    Example: `excerpt("It holds. so so so so", [(10, 21)])` is `[("It holds. ", False), ("so so so so", True)]`.

    Args:
        trace: whole.
        spans: evidence, start and end in characters; the first one is shown. Without any, the trace's end is.
    """
    known = [(start, end) for start, end in spans if 0 <= start < end <= len(trace)]
    if not known:
        cut = max(0, len(trace) - BEFORE - EVIDENCE)
        return [(("… " if cut else "") + visible(trace[cut:]), False)]
    start, end = min(known)
    left, right = max(0, start - BEFORE), min(len(trace), end + AFTER)
    pieces = [(("… " if left else "") + visible(trace[left:start]), False)]
    if end - start > EVIDENCE:
        half = EVIDENCE // 2
        pieces += [
            (visible(trace[start : start + half]), True),
            (f"{GAP}{end - start - 2 * half:,} more characters{GAP}", False),
            (visible(trace[end - half : end]), True),
        ]
    else:
        pieces.append((visible(trace[start:end]), True))
    pieces.append((visible(trace[end:right]) + (" …" if right < len(trace) else ""), False))
    return [(text, hit) for text, hit in pieces if text]
