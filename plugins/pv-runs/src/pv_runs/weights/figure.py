"""Figure of `pv-rl weights`: what a token weighs, and where the update goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pv_judge.pages.figure import check_plot, choose_colours, new_figure, save_figure
from pv_judge.pages.text import plural
from pv_runs.weights.output import FEW, label
from pv_runs.weights.summary import ModeSummary, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["draw"]

CURVE_POINTS = 1000
SCATTER_POINTS = 5000


def draw(summary: Summary, path: Path) -> None:
    """Draw the weight of a token against the length, and the shares of the update. Written whole or not at all."""
    check_plot(path)
    figure = new_figure(10, 4.4)
    left, right = figure.subplots(1, 2)
    _draw_weights(left, summary)
    if summary.responses <= FEW:
        _draw_bars(right, summary)
    else:
        _draw_cumulative(right, summary)
    counted = (
        f"{plural(summary.responses, 'response')} of {summary.prompts} prompt{'s' * (summary.prompts != 1)}"
    )
    source = summary.rollouts.source
    title = counted if source.endswith("given lengths") else f"{counted}: {_short(source)}"
    figure.suptitle(title, fontsize="medium", parse_math=False)
    save_figure(figure, path)


def _draw_weights(axes: Axes, summary: Summary) -> None:
    rows = _by_length(summary)
    few = len(rows) <= FEW
    rows = _spread(rows, SCATTER_POINTS)
    lengths = [summary.rollouts.lengths[row] for row in rows]
    one_curve = few and summary.prompts == 1
    for index, (mode, colour) in enumerate(_coloured(summary)):
        axes.plot(
            lengths,
            [mode.weights[row] or float("nan") for row in rows],
            linestyle="-" if one_curve else "none",
            marker="osD^vP*X"[index % 8],
            markersize=5 if few else 4 if len(rows) <= 500 else 2.5,
            alpha=0.9 if few else 0.5,
            markeredgewidth=0,
            color=colour,
            label=label(mode.spec),
            rasterized=len(rows) > 1000,
        )
    unit = summary.rollouts.unit
    axes.set(xscale="log", yscale="log", xlabel=f"response length, {unit} (log scale)")
    axes.set(ylabel=f"weight of one of its {unit} (log scale)", title=f"what a {unit[:-1]} weighs")
    _label_plainly(axes.xaxis, min(lengths), max(lengths))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", markerscale=1 if few else 2)


def _label_plainly(axis: Axis, low: float, high: float) -> None:
    """100 and not 10^2 on a logarithmic axis, with steps in between where there is room for them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_bars(axes: Axes, summary: Summary) -> None:
    rows = _by_length(summary)
    width = 0.8 / len(summary.modes)
    for index, (mode, colour) in enumerate(_coloured(summary)):
        left = [place - 0.4 + (index + 0.5) * width for place in range(len(rows))]
        heights = [100 * mode.shares[row] for row in rows]
        axes.bar(left, heights, width=width, color=colour, label=label(mode.spec))
    axes.set_xticks(range(len(rows)), [str(summary.rollouts.lengths[row]) for row in rows])
    if len(rows) > 10:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set(xlabel=f"response, by its length in {summary.rollouts.unit}", ylabel="share of the update, %")
    axes.set_title("where the update goes")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(fontsize="small")


def _draw_cumulative(axes: Axes, summary: Summary) -> None:
    rows = _by_length(summary)
    shown = _spread(list(range(len(rows))), CURVE_POINTS)
    for index, (mode, colour) in enumerate(_coloured(summary)):
        total, sums = 0.0, []
        for row in rows:
            total += mode.shares[row]
            sums.append(100 * total)
        axes.plot(
            [0.0, *(100 * (place + 1) / len(rows) for place in shown)],
            [0.0, *(sums[place] for place in shown)],
            linestyle=("-", "--", "-.")[index % 3],
            color=colour,
            label=label(mode.spec),
        )
    axes.plot([0, 100], [0, 100], color="0.6", linewidth=0.8, linestyle=":", label="the same for each")
    axes.set(xlabel="responses, shortest first, %", ylabel="share of the update up to there, %")
    axes.set(xlim=(0, 100), ylim=(0, 100), title="where the update goes")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="upper left")


def _coloured(summary: Summary) -> list[tuple[ModeSummary, str]]:
    return list(zip(summary.modes, choose_colours(len(summary.modes)), strict=True))


def _by_length(summary: Summary) -> list[int]:
    """Rows that count, shortest first."""
    lengths = summary.rollouts.lengths
    return sorted((row for row, length in enumerate(lengths) if length), key=lengths.__getitem__)


def _spread(rows: list[int], most: int) -> list[int]:
    """At most `most` of the rows, evenly taken, the last one among them."""
    if len(rows) <= most:
        return rows
    return [rows[(place + 1) * len(rows) // most - 1] for place in range(most)]


def _short(source: str) -> str:
    """The end of a long path."""
    return source if len(source) <= 80 else "..." + source[-77:]
