"""The figures, each drawn for light and for dark pages."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pv_eval.report.summary import Entry
from pv_judge.pages.colours import choose_colours
from pv_judge.pages.text import plain
from pv_rl.extras import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pv_eval.intervals import Estimate

__all__ = ["Drawn", "draw_charts"]

Painter: TypeAlias = "Callable[[Axes, Sequence[Entry]], None]"

THEMES = {"light": "#1c1c1c", "dark": "#e4e4e4"}
"""Colour of lines and letters; the page shows through behind them."""
BARS = ("true", "false", "right", "wrong")


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """PNG files of one figure."""

    light: bytes
    """Transparent, as is `dark`."""
    dark: bytes
    on_white: bytes
    """For Markdown, whose page may be of any colour."""


def draw_charts(entries: Sequence[Entry]) -> dict[str, Drawn]:
    """`reliability`, `length` and, where there is a choice, `best_of`.

    Raises:
        SetupError: matplotlib is missing.
    """
    with needs("matplotlib", "a report's figures", "pip install matplotlib"):
        import matplotlib  # noqa: F401
    painters: dict[str, Painter] = {"reliability": _reliability}
    if any(row.votes for entry in entries for row in entry.evaluation.lengths):
        painters["length"] = _length
    if any(entry.best_of for entry in entries):
        painters["best_of"] = _best_of
    return {name: _draw(paint, entries) for name, paint in painters.items()}


def _draw(paint: Painter, entries: Sequence[Entry]) -> Drawn:
    light, on_white = _draw_theme(paint, entries, "light", (True, False))
    (dark,) = _draw_theme(paint, entries, "dark", (True,))
    return Drawn(light=light, dark=dark, on_white=on_white)


def _draw_theme(
    paint: Painter, entries: Sequence[Entry], theme: str, transparent: Sequence[bool]
) -> list[bytes]:
    """The figure, once for each of `transparent`."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    keys = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = {"axes.facecolor": "none", "text.parse_math": False}  # a name may hold $
    with rc_context(settings | dict.fromkeys(keys, THEMES[theme])):
        figure = Figure(figsize=(7, 4.4), layout="constrained")
        axes = figure.subplots()
        paint(axes, entries)
        axes.grid(alpha=0.25)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        drawn = []
        for see_through in transparent:
            file = io.BytesIO()
            figure.savefig(file, format="png", dpi=110, transparent=see_through)
            drawn.append(file.getvalue())
    return drawn


def _reliability(axes: Axes, entries: Sequence[Entry]) -> None:
    axes.plot([0, 1], [0, 1], "--", color="#888888", linewidth=1)
    for entry, colour in _coloured(entries):
        bins = entry.evaluation.calibration.bins
        if not bins:
            continue
        shares, values = [one.share for one in bins], [one.right.value for one in bins]
        sizes = [20 + 180 * one.pairs / entry.evaluation.pairs for one in bins]
        axes.errorbar(
            shares,
            values,
            yerr=_reach([one.right for one in bins]),
            color=colour,
            linewidth=1,
            elinewidth=0.8,
        )
        axes.scatter(shares, values, s=sizes, color=colour, label=_label(entry), alpha=0.8)
    axes.set(xlabel="share of votes that accept", ylabel="share of right proofs")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    _legend(axes)


def _length(axes: Axes, entries: Sequence[Entry]) -> None:
    width = 0.8 / len(entries)
    for number, (entry, colour) in enumerate(_coloured(entries)):
        rows = {row.kind: row for row in entry.evaluation.lengths}
        means = [rows[kind].mean for kind in BARS]
        places = [place - 0.4 + width * (number + 0.5) for place in range(len(BARS))]
        heights = [0.0 if math.isnan(mean.value) else mean.value for mean in means]
        ink = axes.xaxis.label.get_color()
        axes.bar(
            places,
            heights,
            width,
            yerr=_reach(means),
            color=colour,
            label=_label(entry),
            ecolor=ink,
            capsize=3,
        )
    units = sorted({entry.info.length_unit for entry in entries})
    axes.set_xticks(range(len(BARS)), ["verdict True", "verdict False", "right votes", "wrong votes"])
    axes.set_ylabel(f"mean length, {' and '.join(units)}")
    _legend(axes)


def _best_of(axes: Axes, entries: Sequence[Entry]) -> None:
    from matplotlib.ticker import MaxNLocator

    first = True
    for entry, colour in _coloured(entries):
        if entry.best_of is None:
            continue
        curves, sizes = entry.best_of.curves, list(entry.best_of.sizes)
        values = {name: [one.value for one in curve] for name, curve in curves.items()}
        axes.fill_between(
            sizes, values["pessimistic"], values["optimistic"], color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(sizes, values["uniform"], color=colour, linewidth=2, label=_label(entry))
        if first:
            axes.plot(sizes, values["oracle"], "--", color="#888888", linewidth=1.3, label="oracle")
            axes.plot(sizes, values["random"], ":", color="#888888", linewidth=1.3, label="random")
        first = False
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="k, proofs to choose from", ylabel="chosen proof is right", ylim=(-0.03, 1.03))
    _legend(axes)


def _coloured(entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    # black would not be seen on a dark page
    colours = ["#999999" if one == "#000000" else one for one in choose_colours(len(entries), ordered=False)]
    return list(zip(entries, colours, strict=True))


def _label(entry: Entry) -> str:
    return "\u200b" + plain(entry.name, 40)  # a label that begins with _ would be left out


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)


def _reach(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Lengths of error bars below and above; 0 where there is no interval."""
    below = [max(0.0, one.value - one.low) if one.value >= one.low else 0.0 for one in estimates]
    above = [max(0.0, one.high - one.value) if one.high >= one.value else 0.0 for one in estimates]
    return [below, above]
