"""Figure of the lab: weightings over time, every seed, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pv_judge.pages.colours import choose_colours
from pv_lab.runs.measures import STAGED
from pv_runs.report.figure import draw_panels, mean_curve
from pv_runs.report.interval import mean_of_seeds
from pv_runs.report.settings import Setting
from pv_runs.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["band", "draw_lab", "draw_panel"]


def draw_lab(summary: Summary) -> bytes:
    """A PNG with a panel a measure."""
    colours = choose_colours(len(summary.settings), ordered=False)
    shown = [measure for measure in STAGED if measure in summary.keys]
    return draw_panels(
        shown,
        summary.settings,
        colours,
        lambda axes, measure: draw_panel(axes, summary.settings, summary.keys[measure], colours),
    )


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
