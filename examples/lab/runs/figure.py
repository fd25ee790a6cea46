"""The weightings over time, every seed, with intervals."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pv_rl.lab.runs.measures import STAGED

from pv_rl.report.colours import choose_colours
from pv_rl.report.figure import mean_curve
from pv_rl.report.interval import mean_of_seeds
from pv_rl.report.measures import Measure
from pv_rl.report.settings import Setting
from pv_rl.report.summary import Summary
from pv_rl.report.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["band", "draw_lab", "draw_panel"]

COLUMNS = 3


def draw_lab(summary: Summary) -> bytes:
    """A PNG with a panel a measure, 1800 pixels wide."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    shown = [measure for measure in STAGED if measure in summary.keys]
    rows = max(1, math.ceil(len(shown) / COLUMNS))
    figure = Figure(figsize=(12, 2.9 * rows + 0.8), layout="constrained")
    colours = choose_colours(len(summary.settings), ordered=False)
    panels = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for axes, measure in zip(panels, shown, strict=False):
        draw_panel(axes, summary.settings, summary.keys[measure], colours)
        _dress(axes, measure)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    if not shown:
        figure.text(0.5, 0.5, "no run has logged anything to draw yet", ha="center")
    _add_legend(figure, summary, colours)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()


def band(setting: Setting, key: str) -> dict[int, tuple[float, float]]:
    """The 95 % interval over the averaged runs, at steps at which two or more have a value and none lacks it."""
    curves = [mean_curve([result.run.log.series.get(key, {})]) for result in setting.averaged]
    curves = [curve for curve in curves if curve]
    found = {}
    for step in mean_curve(curves):
        mean = mean_of_seeds([curve[step] for curve in curves])
        if mean is not None and mean.low is not None and mean.high is not None:
            found[step] = (mean.low, mean.high)
    return found


def draw_panel(axes: Axes, settings: Sequence[Setting], key: str, colours: Sequence[str]) -> None:
    """Lines and bands; the height is that of the lines, since an interval of two seeds would dwarf them."""
    for setting, colour in zip(settings, colours, strict=True):
        for result in setting.results:
            curve = mean_curve([result.run.log.series.get(key, {})])
            style = "-" if result in setting.averaged else ":"
            axes.plot(list(curve), list(curve.values()), style, color=colour, linewidth=0.8, alpha=0.6)
        mean = mean_curve([s for result in setting.averaged if (s := result.run.log.series.get(key))])
        axes.plot(list(mean), list(mean.values()), color=colour, linewidth=2.2)
    low, high = axes.get_ylim()
    for setting, colour in zip(settings, colours, strict=True):
        if around := band(setting, key):
            lows, highs = zip(*around.values(), strict=True)
            axes.fill_between(list(around), lows, highs, color=colour, alpha=0.13, linewidth=0)
    axes.set_ylim(low, high)


def _dress(axes: Axes, measure: Measure) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(measure.title, fontsize=11)
    axes.set_xlabel("step", fontsize=10)
    axes.set_ylabel(measure.unit, fontsize=10)
    axes.tick_params(labelsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))  # there is no step 2.5
    if measure.unit == "accuracy":
        axes.set_ylim(-0.03, 1.03)
    elif measure.unit != "mean of responses":
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _add_legend(figure: Figure, summary: Summary, colours: list[str]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour, linewidth=2.2) for colour in colours]
    names = list(map(str, range(len(lines))))
    legend = figure.legend(lines, names, loc="outside upper center", ncols=min(6, len(lines)), frameon=False)
    for text, setting in zip(legend.get_texts(), summary.settings, strict=True):
        text.set_parse_math(False)
        text.set_text(plain(setting.label, 40))  # here, since a legend leaves out names that begin with _
