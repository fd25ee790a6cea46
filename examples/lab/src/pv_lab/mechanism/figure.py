"""Figure of the mechanism: the main setting by training step, with the controls below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pv_judge.pages.figure import choose_colours, clean, new_figure, to_png
from pv_lab.mechanism.outcome import ArmOutcome, Outcome
from pv_lab.mechanism.policy import BEHAVIOURS
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "shown_steps"]

BEHAVIOUR_COLOURS = ("#999999", "#56B4E9", "#CC79A7")
LABELS = {"short": "accepts at once", "check": "checks once", "recheck": "checks repeatedly"}


def shown_steps(number: int) -> list[int]:
    """Steps of the stacked bars: the first, about an eighth, a quarter, half and three quarters, and the last."""
    return sorted({0, number // 8, number // 4, number // 2, 3 * number // 4, number - 1})


def draw(outcomes: Sequence[Outcome]) -> bytes:
    """A PNG, 1200 pixels wide."""
    main = next(outcome for outcome in outcomes if outcome.experiment.kind == "main")
    controls = [outcome for outcome in outcomes if outcome.experiment.kind == "control"]
    perturbed = [outcome for outcome in outcomes if outcome.experiment.kind == "perturbed"]
    colours = dict(zip([arm.arm.label for arm in main.arms], choose_colours(len(main.arms)), strict=True))

    figure = new_figure(12, 14)
    grid = figure.subfigures(4, 1, squeeze=False, height_ratios=[1.0, 1.0, 1.0, 1.2])
    bars, lines, lengths, dots = grid[:, 0]
    bars.suptitle("Main setting: mean probability of each behaviour, by training step (colours as below)")
    steps = shown_steps(main.arms[0].history.length.shape[1])
    for axes, step in zip(bars.subplots(1, len(steps), sharey=True, squeeze=False).flat, steps, strict=True):
        _draw_bars(axes, main.arms, step)
    lines.suptitle("Main setting: the same over time, every run (thin) and the mean (thick)")
    for axes, arm in zip(lines.subplots(1, len(main.arms), sharey=True).flat, main.arms, strict=True):
        _draw_behaviours(axes, arm)
    lengths.suptitle(
        "Mean tokens of a response and 95 % interval over runs: the main setting beside its controls"
    )
    panels = [main, *controls]
    top = max(float(arm.history.length.max()) for outcome in panels for arm in outcome.arms)
    for axes, outcome in zip(lengths.subplots(1, len(panels), sharey=True).flat, panels, strict=True):
        _draw_lengths(axes, outcome, colours)
        axes.set_ylim(0, top)
    dots.suptitle("One number of the main setting changed: mean tokens at the end, every run")
    _draw_dots(dots.subplots(), [main, *perturbed], colours)

    return to_png(figure, dpi=100)


def _draw_bars(axes: Axes, arms: Sequence[ArmOutcome], step: int) -> None:
    names = [arm.arm.label.replace(":", "\n") for arm in arms]
    base = [0.0] * len(arms)
    for place, colour in enumerate(BEHAVIOUR_COLOURS):
        heights = [float(arm.history.behaviour[:, step, place].mean()) for arm in arms]
        axes.bar(names, heights, bottom=base, color=colour)
        base = [low + height for low, height in zip(base, heights, strict=True)]
    _dress(axes, f"step {step}", "")
    axes.tick_params(axis="x", labelsize=8)


def _draw_behaviours(axes: Axes, arm: ArmOutcome) -> None:
    for place, (name, colour) in enumerate(zip(BEHAVIOURS, BEHAVIOUR_COLOURS, strict=True)):
        curves = arm.history.behaviour[:, :, place]
        axes.plot(curves.T, color=colour, linewidth=0.8, alpha=0.6)
        axes.plot(curves.mean(axis=0), color=colour, linewidth=2.2, label=LABELS[name])
    _dress(axes, arm.arm.label, "step")
    axes.set_ylim(0, 1)
    axes.legend(fontsize=8, frameon=False)


def _draw_lengths(axes: Axes, outcome: Outcome, colours: dict[str, str]) -> None:
    for arm in outcome.arms:
        colour = colours[arm.arm.run.mode]
        axes.plot(arm.history.length.T, color=colour, linewidth=0.6, alpha=0.5)
        axes.plot(arm.history.length.mean(axis=0), color=colour, linewidth=2.0, label=arm.arm.label)
        _draw_interval(axes, arm, colour)
    _dress(axes, outcome.experiment.name, "step")
    axes.legend(fontsize=8, frameon=False, loc="upper left")


def _draw_interval(axes: Axes, arm: ArmOutcome, colour: str) -> None:
    """A band of the interval over runs, at some forty steps; none of one run."""
    steps = range(0, arm.history.length.shape[1], max(1, arm.history.length.shape[1] // 40))
    found = [mean_of_seeds(arm.history.length[:, step].tolist()) for step in steps]
    low = [math.nan if one is None or one.low is None else one.low for one in found]
    high = [math.nan if one is None or one.high is None else one.high for one in found]
    axes.fill_between(list(steps), low, high, color=colour, alpha=0.2, linewidth=0)


def _draw_dots(axes: Axes, outcomes: Sequence[Outcome], colours: dict[str, str]) -> None:
    for place, outcome in enumerate(outcomes):
        for shift, arm in enumerate(outcome.arms):
            values = arm.values("length_end")
            at = [place + 0.2 * (shift - 1)] * len(values)
            label = arm.arm.label if place == 0 else None
            axes.plot(at, values, "o", color=colours[arm.arm.run.mode], markersize=4, alpha=0.7, label=label)
    axes.set_xticks(
        range(len(outcomes)), [outcome.experiment.name.replace(" ", "\n") for outcome in outcomes]
    )
    _dress(axes, "", "")
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)


def _dress(axes: Axes, title: str, x_label: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x_label, fontsize=9)
    axes.tick_params(labelsize=9)
    clean(axes, "y")
