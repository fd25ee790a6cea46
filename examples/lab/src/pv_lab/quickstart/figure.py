"""Figure of a quick-start run: reward with accuracy, and response length."""

from __future__ import annotations

from pathlib import Path

from pv_judge.pages.figure import new_figure, save_figure
from pv_lab.quickstart.curves import Point

__all__ = ["draw"]


def draw(points: list[Point], mode: str, path: Path) -> None:
    """Draw reward with held-out accuracy, and response length, against the step. Written whole or not at all."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    trained = [p for p in points if p.reward is not None]
    validated = [p for p in points if p.balanced is not None]

    left.plot([p.step for p in trained], [p.reward for p in trained], color="0.7", label="reward (training)")
    for attribute, label, style in (
        ("right", "held out, right proofs", "C0--"),
        ("wrong", "held out, wrong proofs", "C3--"),
        ("balanced", "held out, balanced", "C2o-"),
    ):
        left.plot([p.step for p in validated], [getattr(p, attribute) for p in validated], style, label=label)
    left.set(xlabel="step", ylabel="reward, accuracy", ylim=(0, 1), title=f"loss_agg_mode={mode}")
    left.legend(fontsize="small", loc="lower right")

    right.plot([p.step for p in trained], [p.length for p in trained], "C1")
    right.set(xlabel="step", ylabel="tokens", title="mean response length")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # there is no step 2.5

    save_figure(figure, path, dpi=120)
