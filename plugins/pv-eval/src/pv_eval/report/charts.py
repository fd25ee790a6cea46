"""Figures of an evaluation report: reliability, length and best of k."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pv_eval.report.summary import Entry, Group
from pv_eval.run_files import LENGTH_UNITS
from pv_judge.pages.figure import check_figure, choose_colours, clean, new_figure, to_png
from pv_judge.pages.text import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pv_eval.best_of import BestOf
    from pv_eval.intervals import Estimate

__all__ = ["draw_charts", "legend_below", "length_name", "whole_label", "with_lengths"]

Drawn: TypeAlias = "Sequence[tuple[Entry, str]]"
"""Entries with their colours, which are the same in all figures of a set."""
Painter: TypeAlias = "Callable[[Axes, Drawn], None]"

HEIGHT = 4.2
"""Inches, without the legend."""
LINE = 60
"""Characters of a line in a legend."""
BARS = ("true", "false", "right", "wrong")


def draw_charts(group: Group) -> dict[str, bytes]:
    """PNG files of one set by name: `reliability`, `length` by unit and, where there is a choice, `best_of`.

    Raises:
        SetupError: matplotlib is missing.
    """
    check_figure("a report")
    coloured = list(zip(group.entries, choose_colours(len(group.entries)), strict=True))
    drawn = {f"{group.prefix}reliability": _draw(_reliability, coloured)}
    for unit, entries in with_lengths(group.entries).items():
        those = {id(entry) for entry in entries}
        drawn[length_name(group, unit)] = _draw(_length, [one for one in coloured if id(one[0]) in those])
    if any(entry.best_of for entry in group.entries):
        drawn[f"{group.prefix}best_of"] = _draw(_best_of, coloured)
    return drawn


def with_lengths(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """By unit of length, those with a vote whose length is known."""
    known = [entry for entry in entries if any(row.votes for row in entry.evaluation.lengths)]
    by_unit = {unit: [one for one in known if one.info.length_unit == unit] for unit in LENGTH_UNITS}
    return {unit: those for unit, those in by_unit.items() if those}


def length_name(group: Group, unit: str) -> str:
    """Name of the figure of a unit: `length` where the set has one unit."""
    return f"{group.prefix}length" + (f"_{unit}" if len(with_lengths(group.entries)) > 1 else "")


def _draw(paint: Painter, entries: Drawn) -> bytes:
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):  # a name may hold $
        figure = new_figure(7, HEIGHT)
        axes = figure.subplots()
        paint(axes, entries)
        clean(axes)
        handles, labels = axes.get_legend_handles_labels()
        legend_below(figure, dict(zip(labels, handles, strict=True)))
        return to_png(figure, dpi=110)


def _reliability(axes: Axes, entries: Drawn) -> None:
    axes.plot([0, 1], [0, 1], "--", color="#888888", linewidth=1)
    for entry, colour in entries:
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


def _length(axes: Axes, entries: Drawn) -> None:
    width = 0.8 / len(entries)
    for number, (entry, colour) in enumerate(entries):
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
    axes.set_xticks(range(len(BARS)), ["verdict True", "verdict False", "right votes", "wrong votes"])
    axes.set(ylim=(0, None), ylabel=f"mean length, {entries[0][0].info.length_unit}")


def _best_of(axes: Axes, entries: Drawn) -> None:
    from matplotlib.ticker import MaxNLocator

    chosen = [(entry, colour, entry.best_of) for entry, colour in entries if entry.best_of]
    bounds: dict[
        object, tuple[str, str, BestOf]
    ] = {}  # verifiers with the same proofs to choose from share them
    for entry, colour, found in chosen:
        sizes, values = list(found.sizes), _values(found)
        axes.fill_between(
            sizes, values["pessimistic"], values["optimistic"], color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(sizes, values["uniform"], color=colour, linewidth=2, label=_label(entry))
        key = tuple(round(one, 9) for name in ("oracle", "random") for one in values[name])
        bounds.setdefault(key, (entry.name, colour, found))
    for name, colour, found in bounds.values():
        whose, colour = (f" of the proofs of {name}", colour) if len(bounds) > 1 else ("", "#888888")
        for bound, style in (("oracle", "--"), ("random", ":")):
            label = _wrapped(f"{bound}{whose}")
            axes.plot(found.sizes, _values(found)[bound], style, color=colour, linewidth=1.3, label=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="k, proofs to choose from", ylabel="chosen proof is right", ylim=(-0.03, 1.03))


def _values(found: BestOf) -> dict[str, list[float]]:
    return {name: [one.value for one in curve] for name, curve in found.curves.items()}


def _label(entry: Entry) -> str:
    return whole_label(entry.name)


def whole_label(name: str) -> str:
    """A name for a legend, whole, on several lines if need be."""
    return "\u200b" + _wrapped(name)  # a label that begins with _ would be left out


def _wrapped(name: str) -> str:
    return textwrap.fill(plain(name, 1000), LINE)


def legend_below(figure: Figure, lines: Mapping[str, Artist]) -> None:
    """Add a legend below the axes, whole; the figure grows by its lines.

    Args:
        figure: with its axes.
        lines: what is drawn, by label.
    """
    if lines:
        columns = 1 if len(lines) == 1 or max(map(len, lines)) > LINE // 2 else 2
        figure.legend(
            list(lines.values()),
            list(lines),
            loc="outside lower center",
            frameon=False,
            fontsize=9,
            ncols=columns,
        )
        more = 0.2 * sum(1 + label.count("\n") for label in lines) / columns
        figure.set_figheight(figure.get_figheight() + more)


def _reach(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Lengths of error bars below and above; 0 where there is no interval."""
    below = [max(0.0, one.value - one.low) if one.value >= one.low else 0.0 for one in estimates]
    above = [max(0.0, one.high - one.value) if one.high >= one.value else 0.0 for one in estimates]
    return [below, above]
