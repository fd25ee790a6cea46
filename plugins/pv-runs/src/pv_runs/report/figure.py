"""Figure of a report: the runs over time, a panel for each measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pv_judge.pages.figure import choose_colours, clean, new_figure, to_png
from pv_judge.pages.text import plain
from pv_runs.measures import Measure
from pv_runs.metrics_log import Series
from pv_runs.report.interval import mean_of_seeds
from pv_runs.report.settings import Setting, is_numeric
from pv_runs.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["band", "draw", "draw_panel", "mean_curve", "panels"]

COLUMNS = 3
POINTS = 2000
"""Points of a line that are drawn at most."""
BY_VERDICT = ("length_true", "length_false", "length_none")
HELD_OUT = ("held_out_right", "held_out_wrong")
IN_TRAINING = ("training_right", "training_wrong")


def panels(summary: Summary) -> list[Measure]:
    """Measures to draw. Accuracy in training stands in where nothing was held out, the length where no verdict is."""
    names = {measure.name for measure in summary.keys}
    spare = {*(IN_TRAINING if names.intersection(HELD_OUT) else ())}
    spare |= {"length"} if names.intersection(BY_VERDICT) else set()
    return [measure for measure in summary.keys if measure.panel and measure.name not in spare]


def draw(summary: Summary, shown: Sequence[Measure] | None = None, *, bands: bool = False) -> bytes:
    """A PNG with a panel for each measure and a legend of the settings, 1800 pixels wide, for a page of 1200.

    Args:
        summary: of the runs.
        shown: measures; by default `panels`.
        bands: whether to draw the intervals over seeds, see `band`.
    """
    shown = panels(summary) if shown is None else shown
    colours = choose_colours(len(summary.settings), is_numeric([one.label for one in summary.settings]))
    rows = max(1, math.ceil(len(shown) / COLUMNS))
    figure = new_figure(12, 2.9 * rows + 0.8)
    grid = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for axes, measure in zip(grid, shown, strict=False):
        draw_panel(axes, summary.settings, measure, summary.keys[measure], colours, bands=bands)
        _dress(axes, measure)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    if not shown:
        figure.text(0.5, 0.5, "no run has logged anything to draw yet", ha="center")
    _add_legend(figure, summary.settings, colours)
    return to_png(figure)


def draw_panel(
    axes: Axes,
    settings: Sequence[Setting],
    measure: Measure,
    key: str,
    colours: Sequence[str],
    *,
    bands: bool,
) -> None:
    """A line for each run and a mean for each setting. A band may leave the panel: two seeds' would dwarf the lines."""
    for setting, colour in zip(settings, colours, strict=True):
        _draw_setting(axes, setting, measure, key, colour)
    low, high = axes.get_ylim()
    for setting, colour in zip(settings, colours, strict=True):
        if bands and (around := band(setting, key)):
            lows, highs = zip(*around.values(), strict=True)
            axes.fill_between(list(around), lows, highs, color=colour, alpha=0.13, linewidth=0)
    axes.set_ylim(low, high)


def band(setting: Setting, key: str) -> dict[int, tuple[float, float]]:
    """The 95 % interval over the averaged runs, at steps at which two or more have a value and none lacks it."""
    curves = [mean_curve([result.run.log.series.get(key, {})]) for result in setting.averaged]
    curves = [curve for curve in curves if curve]
    means = {step: mean_of_seeds([curve[step] for curve in curves]) for step in mean_curve(curves)}
    return {
        step: (mean.low, mean.high)
        for step, mean in means.items()
        if mean is not None and mean.low is not None and mean.high is not None
    }


def mean_curve(curves: Sequence[Series]) -> Series:
    """The mean at those steps at which all have a finite number; empty without any."""
    finite = [{step: value for step, value in curve.items() if math.isfinite(value)} for curve in curves]
    if not finite:
        return {}
    common = [step for step in finite[0] if all(step in curve for curve in finite)]
    return {step: sum(curve[step] for curve in finite) / len(finite) for step in common}


def _draw_setting(axes: Axes, setting: Setting, measure: Measure, key: str, colour: str) -> None:
    few = {"marker": "o", "markersize": 3.5} if measure.kind == "held out" else {}
    curves = [series for result in setting.averaged if (series := result.run.log.series.get(key))]
    for result in setting.results:
        averaged = result in setting.averaged
        curve = mean_curve([result.run.log.series.get(key, {})])
        if not curve or (averaged and len(curves) == 1):
            continue
        steps = _spread(list(curve))
        values = [curve[step] for step in steps]
        if averaged:
            axes.plot(steps, values, color=colour, linewidth=0.9, alpha=0.5)
        else:
            axes.plot(steps, values, ":", color=colour, linewidth=1.3, zorder=3)
            axes.plot(steps[-1:], values[-1:], "x", color=colour, markersize=7, markeredgewidth=1.8, zorder=4)
    mean = mean_curve(curves)
    steps = _spread(list(mean))
    axes.plot(steps, [mean[step] for step in steps], color=colour, linewidth=2.2, **few)


def _dress(axes: Axes, measure: Measure) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(measure.title, fontsize=11)
    axes.set_xlabel("step", fontsize=10)
    axes.set_ylabel(measure.unit, fontsize=10)
    axes.tick_params(labelsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))  # there is no step 2.5
    if measure.unit == "accuracy":
        axes.set_ylim(-0.03, 1.03)
    elif measure.unit in ("tokens", "share of responses"):
        axes.set_ylim(bottom=0)
    clean(axes)


def _add_legend(figure: Figure, settings: Sequence[Setting], colours: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour, linewidth=2.2) for colour in colours]
    columns = min(6, len(lines))
    legend = figure.legend(
        lines, list(map(str, range(len(lines)))), loc="outside upper center", ncols=columns, frameon=False
    )
    for text, setting in zip(legend.get_texts(), settings, strict=True):
        text.set_parse_math(False)  # a label may hold $, or begin with _, which a legend leaves out
        text.set_text(plain(setting.label, 40))


def _spread(steps: list[int]) -> list[int]:
    """At most `POINTS` of the steps, evenly taken, the last one among them."""
    if len(steps) <= POINTS:
        return steps
    return [steps[(place + 1) * len(steps) // POINTS - 1] for place in range(POINTS)]
