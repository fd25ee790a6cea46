"""Figures of an evaluation report: reliability, length and best of k."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pv_eval.report.summary import Entry
from pv_judge.pages.figure import check_figure, choose_colours, clean, new_figure, to_png
from pv_judge.pages.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pv_eval.intervals import Estimate

__all__ = ["draw_charts"]

Painter: TypeAlias = "Callable[[Axes, Sequence[Entry]], None]"

BARS = ("true", "false", "right", "wrong")


def draw_charts(entries: Sequence[Entry]) -> dict[str, bytes]:
    """PNG files: `reliability`, `length` and, where there is a choice, `best_of`.

    Raises:
        SetupError: matplotlib is missing.
    """
    check_figure("a report's figures")
    painters: dict[str, Painter] = {"reliability": _reliability}
    if any(row.votes for entry in entries for row in entry.evaluation.lengths):
        painters["length"] = _length
    if any(entry.best_of for entry in entries):
        painters["best_of"] = _best_of
    return {name: _draw(paint, entries) for name, paint in painters.items()}


def _draw(paint: Painter, entries: Sequence[Entry]) -> bytes:
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):  # a name may hold $
        figure = new_figure(7, 4.4)
        axes = figure.subplots()
        paint(axes, entries)
        clean(axes)
        return to_png(figure, dpi=110)


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
        axes.bar(
            places,
            heights,
            width,
            yerr=_reach(means),
            color=colour,
            label=_label(entry),
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
    return list(zip(entries, choose_colours(len(entries)), strict=True))


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
