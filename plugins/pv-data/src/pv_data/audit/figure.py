"""Plot of audit plans over the true agreement: probability of acceptance, and proofs read."""

from __future__ import annotations

from pathlib import Path

from pv_data.audit.comparison import Comparison
from pv_data.audit.operating import operating_characteristic
from pv_judge.pages.colours import choose_colours
from pv_rl.errors import DataError
from pv_rl.extras import needs
from pv_rl.files import check_target, write_atomically

__all__ = ["check_plot", "draw_comparison"]

FORMATS = (".png", ".pdf", ".svg")
POINTS = 101
"""Agreements from 0.5 to 1."""


def check_plot(path: Path) -> None:
    """Say before any work that no picture can be made.

    Raises:
        SetupError: matplotlib is missing.
        DataError: the name's ending is not of `FORMATS`, or its folder is missing.
    """
    if path.suffix not in FORMATS:
        raise DataError(f"--plot {path} does not say what to write; end the name in {', '.join(FORMATS)}")
    check_target("--plot", path)
    with needs("matplotlib", "--plot", "pip install matplotlib, or leave --plot out"):
        import matplotlib  # noqa: F401


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw to a file, written whole or not at all."""
    check_plot(path)
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    population = comparison.size if comparison.finite else None
    agreements = [0.5 + 0.5 * place / (POINTS - 1) for place in range(POINTS)]
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = choose_colours(len(comparison.plans), ordered=False)
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
    write_atomically(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=150))
