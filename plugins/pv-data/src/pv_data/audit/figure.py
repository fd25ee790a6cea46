"""Plot of audit plans over the true agreement: probability of acceptance, and proofs read."""

from __future__ import annotations

from pathlib import Path

from pv_data.audit.comparison import Comparison
from pv_data.audit.operating import operating_characteristic
from pv_judge.pages.figure import check_plot, choose_colours, new_figure, save_figure

__all__ = ["draw_comparison"]

POINTS = 101
"""Agreements from 0.5 to 1."""


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw to a file, written whole or not at all."""
    check_plot(path)
    population = comparison.size if comparison.finite else None
    agreements = [0.5 + 0.5 * place / (POINTS - 1) for place in range(POINTS)]
    figure = new_figure(10, 4.4)
    left, right = figure.subplots(1, 2)
    colours = choose_colours(len(comparison.plans))
    for place, (one, colour) in enumerate(zip(comparison.plans, colours, strict=True)):
        curve = [operating_characteristic(one.plan, rate, population=population) for rate in agreements]
        line = {"color": colour, "linestyle": ("-", "--", ":", "-.")[place % 4], "label": one.plan.name}
        left.plot([100 * at.agreement for at in curve], [100 * at.accept for at in curve], **line)
        right.plot([100 * at.agreement for at in curve], [at.expected_checked for at in curve], **line)
    left.set(xlabel="true agreement of the slice, %", ylabel="accepted, %", xlim=(50, 100), ylim=(0, 100))
    right.set(xlabel="true agreement of the slice, %", ylabel="proofs read on average", xlim=(50, 100))
    right.set_ylim(bottom=0)
    left.set_title("how likely it is accepted")
    right.set_title("what that costs")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    left.legend(fontsize="small", loc="upper left")
    figure.suptitle(f"audit of a slice of {comparison.size:,} proofs", fontsize="medium")
    save_figure(figure, path)
