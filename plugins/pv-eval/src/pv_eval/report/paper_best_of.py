"""The paper's best-of-k figure: a panel a set, a curve a verifier, between chance and an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pv_eval.best_of import BestOf, best_of_set
from pv_eval.intervals import Estimate
from pv_eval.report.charts import legend_below, whole_label
from pv_eval.report.paper import BASE, VERIFIER
from pv_eval.report.paper_runs import Missing, Run, Runs
from pv_judge.pages.blocks import Column, Table
from pv_judge.pages.figure import check_figure, choose_colours, clean, new_figure, to_png
from pv_judge.pages.text import percent, plain, plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist

__all__ = ["Panel", "best_of_panels", "draw_panels", "lacking", "panel_table"]

SET = "best_of_k"
VARIANTS = ("style", "error_types")
"""Sets whose proofs of a question are variants of one another, and no candidates."""
ACROSS = 2
"""Panels side by side."""
MOST = 24
"""Panels of the figure; the tables have the further ones."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The curves of a set."""

    set_name: str
    curves: Sequence[tuple[Run, BestOf]]
    """Of each verifier."""

    @property
    def lines(self) -> list[tuple[str, Sequence[Estimate]]]:
        """By label, for k = 1, 2, ...: each verifier, then oracle and random of the first one's set."""
        first = self.curves[0][1].curves
        of_verifiers = [(run.label, best.curves["uniform"]) for run, best in self.curves]
        return [*of_verifiers, *((name, first[name]) for name in ("oracle", "random"))]

    @property
    def text(self) -> str:
        """How many problems and candidates."""
        best = self.curves[0][1]
        low, high = best.candidates
        span = f"{low}" if low == high else f"{low} to {high}"
        left = f"; {plural(best.left_out, 'problem')} with fewer proofs left out" if best.left_out else ""
        name = plain(self.set_name, 40) or "(no name)"
        return f"{name}: {plural(best.problems, 'problem')} with {span} proofs each{left}"


def best_of_panels(runs: Runs) -> list[Panel]:
    """A panel a set that has a choice: a question with a right and a wrong proof. The paper's own set is the first."""
    panels: dict[str, list[tuple[Run, BestOf]]] = {}
    for run in runs.runs:
        if run.set_name not in VARIANTS and _choice(run):
            panels.setdefault(run.set_name, []).append((run, best_of_set(run.counts, runs.how)))
            runs.used.update({run.folder} if run.set_name == SET else ())
    for name, curves in panels.items():
        sets = {frozenset((pair.pair_id, pair.label) for pair in run.counts.pairs) for run, _ in curves}
        if len(sets) > 1:
            runs.notes[
                f"Best of k on {name or 'the set without a name'}: the verifiers voted on different pairs, so their "
                "curves are not on the same problems. Oracle and random are the first one's."
            ] = None
    return [Panel(set_name=name, curves=panels[name]) for name in sorted(panels, key=lambda one: one != SET)]


def panel_table(panel: Panel) -> Table:
    """A row a curve, a column for k = 1, 2, 4, ... and the last."""
    last = max(len(curve) for _, curve in panel.lines)
    sizes = sorted({2**power for power in range(last.bit_length())} | {last})

    def show(curve: Sequence[Estimate], k: int) -> str:
        return percent(curve[k - 1].value) if k <= len(curve) else ""

    columns: list[Column[tuple[str, Sequence[Estimate]]]] = [
        Column("k", lambda line: plain(line[0], 500), left=True),
        *(Column(str(k), lambda line, k=k: show(line[1], k), "%") for k in sizes),
    ]
    return Table.of(columns, panel.lines)


def lacking(runs: Runs) -> list[Missing]:
    """Votes that the paper's own figure needs, at the least."""
    these = [run.verifier for run in runs.on(SET)]
    return [] if these else [Missing(runs.resolve(name), SET) for name in (BASE, VERIFIER)]


def _choice(run: Run) -> bool:
    counts = run.counts
    number = np.bincount(counts.question)
    right = np.bincount(counts.question, weights=counts.label)
    return bool(((right > 0) & (right < number)).any())


def draw_panels(panels: Sequence[Panel]) -> bytes:
    """The figure of the first panels as a PNG file. The band of a curve is between ties taken as right and as wrong.

    Raises:
        SetupError: matplotlib is missing.
    """
    check_figure("a report")
    from matplotlib import rc_context
    from matplotlib.ticker import MaxNLocator

    panels = panels[:MOST]
    names = list(dict.fromkeys(run.label for panel in panels for run, _ in panel.curves))
    colours = dict(zip(names, choose_colours(len(names)), strict=True))
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    with rc_context({"text.parse_math": False}):  # a name may hold $
        figure = new_figure(6.2 * across, 4.2 * down)
        grid = figure.subplots(down, across, squeeze=False)
        lines: dict[str, Artist] = {}
        bounds = [whole_label(name) for name in ("oracle", "random")]
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for panel, axes in zip(panels, grid.flat, strict=False):
            for run, best in panel.curves:
                low, high = (
                    [one.value for one in best.curves[name]] for name in ("pessimistic", "optimistic")
                )
                axes.fill_between(best.sizes, low, high, color=colours[run.label], alpha=0.15, linewidth=0)
            for (label, curve), colour, style in zip(
                panel.lines,
                [*(colours[run.label] for run, _ in panel.curves), "#888888", "#888888"],
                [*("-" for _ in panel.curves), "--", ":"],
                strict=True,
            ):
                sizes = range(1, len(curve) + 1)
                values = [one.value for one in curve]
                (line,) = axes.plot(sizes, values, style, color=colour, linewidth=1.8)
                lines.setdefault(whole_label(label), line)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set(xlabel="k, proofs to choose from", ylabel="chosen proof is right", ylim=(-0.03, 1.03))
            axes.set_title(panel.text, fontsize=10)
            clean(axes)
        legend_below(figure, {name: lines[name] for name in sorted(lines, key=bounds.__contains__)})
        return to_png(figure, dpi=110)
