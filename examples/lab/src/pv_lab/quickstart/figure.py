"""Figure of the quick start: accuracy and length over the steps, as a PNG."""

from __future__ import annotations

from pathlib import Path

from pv_lab.quickstart.curves import Point
from pv_rl.files import write_atomically

__all__ = ["draw"]


def draw(points: list[Point], mode: str, path: Path) -> None:
    """Draw reward with held-out accuracy, and response length, against the step. Written whole or not at all."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 3.6), layout="constrained")
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

    write_atomically(path, lambda temporary: figure.savefig(temporary, format="png", dpi=120))
