"""Experiments: the main setting and the controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pv_lab.mechanism.settings import Setting
from pv_lab.mechanism.training import Run
from pv_rl.errors import ConfigError
from pv_rl.losses import resolve_mode

__all__ = ["Arm", "Experiment", "experiments", "weightings"]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A setting under a weighting, trained several times."""

    label: str
    """As in the figure and the tables."""
    run: Run
    seeds: int
    """How often it is trained; each time other proofs and other responses are drawn."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Arms to be compared."""

    name: str
    """As in the tables."""
    kind: str
    """`main`, `control` or `perturbed`."""
    arms: tuple[Arm, ...]


def weightings(eta: float) -> tuple[str, str, str]:
    """The three specs, from the most weight for long responses to the least.

    Raises:
        LossModeError: eta is not in [0, 1].
    """
    specs = ("dapo", f"balanced:{eta}", "grpo")
    for spec in specs:
        resolve_mode(spec)
    return specs


def experiments(setting: Setting, eta: float, seeds: int) -> list[Experiment]:
    """The main setting, four controls, and twelve settings of which each has one number changed.

    Args:
        setting: the main one.
        eta: of `balanced`.
        seeds: of the main setting and the controls; perturbed settings have half of them, and at least one.

    Raises:
        ConfigError: no seeds.
        LossModeError: eta is not in [0, 1].
    """
    if seeds < 1:
        raise ConfigError(f"seeds={seeds} trains nothing; give 1 or more, and 2 or more for an interval")
    modes = weightings(eta)
    dapo, _, grpo = modes
    double = replace(setting, learning_rate=2 * setting.learning_rate)
    half = replace(setting, learning_rate=setting.learning_rate / 2)
    longer = replace(setting, train_steps=2 * setting.train_steps)
    rates = (
        Arm(label=f"{grpo}, rate x 2", run=Run(setting=double, mode=grpo), seeds=seeds),
        Arm(label=f"{dapo}, rate / 2", run=Run(setting=half, mode=dapo), seeds=seeds),
    )
    even = replace(setting, p_true=0.5)
    controls = [
        Experiment(name="main", kind="main", arms=_arms(setting, modes, seeds)),
        Experiment(name="balanced labels", kind="control", arms=_arms(even, modes, seeds)),
        Experiment(name="other rates", kind="control", arms=rates),
        Experiment(name="twice as long", kind="control", arms=_arms(longer, modes, seeds)),
    ]
    changed = [
        Experiment(name=name, kind="perturbed", arms=_arms(other, modes, max(1, seeds // 2)))
        for name, other in perturbed(setting).items()
    ]
    return controls + changed


def perturbed(setting: Setting) -> dict[str, Setting]:
    """Each of six numbers a little lower and a little higher: a share by 0.03 or 0.1, odds and rates by a factor."""
    changes: dict[str, tuple[float, float]] = {
        "p_true": (max(0.0, setting.p_true - 0.03), min(1.0, setting.p_true + 0.03)),
        "short": (setting.short - 0.1, setting.short + 0.1),
        "miss": (_odds(setting.miss, 1 / 1.5), _odds(setting.miss, 1.5)),
        "false_alarm": (_odds(setting.false_alarm, 1 / 1.5), _odds(setting.false_alarm, 1.5)),
        "skill_rate": (setting.skill_rate / 1.5, setting.skill_rate * 1.5),
        "learning_rate": (setting.learning_rate / 1.5, setting.learning_rate * 1.5),
    }
    return {
        f"{name} {value:.3g}": replace(setting, **{name: value})
        for name, pair in changes.items()
        for value in pair
    }


def _arms(setting: Setting, modes: Sequence[str], seeds: int) -> tuple[Arm, ...]:
    return tuple(Arm(label=mode, run=Run(setting=setting, mode=mode), seeds=seeds) for mode in modes)


def _odds(probability: float, factor: float) -> float:
    odds = factor * probability / (1 - probability)
    return odds / (1 + odds)
