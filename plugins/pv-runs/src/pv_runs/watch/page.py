"""A frame as one HTML file that loads itself again: no script, nothing to fetch, all text escaped."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from html import escape

from pv_judge.pages.web_page import POLICY
from pv_runs.watch.frame import Frame, Row, Section, show, show_change
from pv_runs.watch.sparkline import condense, heights
from pv_runs.watch.words import change_note, headline

__all__ = ["to_page"]

WIDTH, HEIGHT, POINTS = 220, 26, 220
"""Of a curve, in its own units, and how many points it has at most."""
STYLE = """
:root { color-scheme: light dark; --line: #d8d8d8; --text: #1c1c1c; --dim: #666666; --page: #ffffff; --curve: #0072b2;
  --mark: #ffe08a; --good: #0a7a3d; --bad: #b3261e; --warn: #8a5a00; --other: #0b6e8a; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a3a3a; --text: #e4e4e4; --dim: #a0a0a0; --page: #181818; --curve: #6cb6e8; --mark: #6b5200;
    --good: #6fd08c; --bad: #ff8a80; --warn: #f0c060; --other: #7fd0e8; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 1240px;
  margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
.state { padding: 0 .5rem; border: 1px solid; border-radius: 4px; font-size: 1rem; font-weight: 600; }
.running { color: var(--good); } .ended { color: var(--other); } .failed, .alarm { color: var(--bad); }
.stopped, .unknown, .note { color: var(--warn); }
.head { margin: .3rem 0 1rem; } .head span { margin-right: 1.2rem; white-space: nowrap; }
.dim, small { color: var(--dim); }
.sections { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)); gap: 1.2rem 2rem; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
td { border-top: 1px solid var(--line); padding: .15rem .4rem .15rem 0; text-align: right; white-space: nowrap; }
td:first-child { text-align: left; white-space: normal; } td.value { font-weight: 600; }
td.value { width: 4.2rem; } td.change { width: 4rem; } td.curve { width: 220px; padding-right: 0; }
svg { display: block; width: 100%; height: 26px; }
polyline { fill: none; stroke: var(--curve); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
circle { fill: var(--curve); }
.trace { border-top: 1px solid var(--line); padding: .4rem 0; overflow-wrap: anywhere; }
.trace code { font: 13px/1.45 ui-monospace, monospace; unicode-bidi: isolate; }
@media (max-width: 600px) { td.curve { width: 110px; } }
mark { background: var(--mark); color: inherit; }
"""


def to_page(frame: Frame, *, refresh: float | None) -> str:
    """The page.

    Args:
        frame: what it shows.
        refresh: seconds after which a browser loads it again; None for a page that stays as it is.
    """
    stamp = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(frame.now))
    kept = f"loaded again every {refresh:.0f} s" if refresh else "not kept up to date"
    again = f'<meta http-equiv="refresh" content="{max(1, round(refresh))}">\n' if refresh else ""
    body = "\n".join(_body(frame))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_title(frame))}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        f'<p class="dim">As of {escape(stamp)}, {kept}.</p>\n</body>\n</html>\n'
    )


def _title(frame: Frame) -> str:
    return f"{'! ' if frame.alarms else ''}{headline(frame)[0]} - {frame.name}"


def _body(frame: Frame) -> Iterator[str]:
    yield f'<h1>{escape(frame.name)} <span class="state {escape(frame.state)}">{escape(frame.state)}</span></h1>'
    yield f'<p class="head">{"".join(f"<span>{escape(part)}</span> " for part in headline(frame))}</p>'
    if frame.note:
        yield f'<p class="{"failed" if frame.state == "failed" else "note"}">{escape(frame.note)}</p>'
    for note in frame.notes:
        yield f'<p class="note">{escape(note)}</p>'
    for alarm in frame.alarms or ():
        where = "" if alarm.step is None else f"step {alarm.step}: "
        yield f'<p class="alarm">{where}<b>{escape(alarm.sign)}</b> {escape(alarm.message)}</p>'
    if frame.alarms is not None and not frame.alarms:
        yield '<p class="running">sentinel: no alarm</p>'
    yield f'<div class="sections">{"".join(_section(section, frame.step or 0) for section in frame.sections)}</div>'
    if frame.sections:
        yield f'<p class="dim">{escape(change_note(frame))}</p>'
    if frame.traces:
        yield f"<h2>Last malformed traces <small>{escape(frame.traces_from)}</small></h2>"
    for trace in frame.traces:
        where = "" if trace.step is None else f"step {trace.step} "
        text = "".join(f"<mark>{escape(t)}</mark>" if hit else escape(t) for t, hit in trace.pieces)
        yield f'<div class="trace">{where}<b class="alarm">{escape(trace.reason)}</b><br><code>{text}</code></div>'


def _section(section: Section, last: int) -> str:
    rows = "".join(_row(row, last) for row in section.rows)
    return f"<section><h2>{escape(section.title)}</h2><table>{rows}</table></section>"


def _row(row: Row, last: int) -> str:
    return (
        f"<tr><td>{escape(row.title)} <small>{escape(row.unit)}</small></td>"
        f'<td class="value">{escape(show(row.last, row.form))}</td><td class="change">{escape(show_change(row))}</td>'
        f'<td class="curve">{_curve(row, last)}</td></tr>'
    )


def _curve(row: Row, last: int) -> str:
    """From the least value at the bottom to the greatest at the top, from step 0 to the run's `last`; a line ends where
    there is no number.
    """
    points = condense(row.values, POINTS)
    finite = [value for value in points if math.isfinite(value)]
    if not finite:
        return ""
    runs: list[list[str]] = [[]]
    for step, height in zip(condense(row.steps, POINTS), heights(points), strict=True):
        if not math.isfinite(height):
            runs.append([])
            continue
        x = WIDTH * min(1.0, step / max(1, last))
        y = HEIGHT - 3 - (HEIGHT - 6) * height
        runs[-1].append(f"{x:.1f},{y:.1f}")
    lines = "".join(
        f'<polyline points="{" ".join(run if len(run) > 1 else run * 2)}"/>' for run in runs if run
    )
    label = f"{show(min(finite), row.form)} to {show(max(finite), row.form)}, steps {row.steps[0]} to {row.steps[-1]}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f"<title>{escape(label)}</title>{lines}</svg>"
    )
