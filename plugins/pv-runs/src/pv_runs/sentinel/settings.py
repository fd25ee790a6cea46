"""Settings of the sentinel: its rate of false alarms, its memory, its detectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest
from pv_runs.sentinel.detectors import DEFAULT_DETECTORS, DETECTORS
from pv_runs.sentinel.level import Memories

__all__ = ["SentinelConfig"]

RANGES = {
    "responses": (2, math.inf),
    "steps_per_false_alarm": (10, 1e6),
    "warm_up": (4, 10_000),
    "shift": (0.5, 4.0),
    "memory": (3, 10_000),
    "noise_memory": (5, 100_000),
    "cap": (2, 10),
    "autocorrelation": (0.0, 0.9),
    "doubling_steps": (1, math.inf),
    "held_out_slack": (0.0, 1.0),
}
"""Least and largest value of each number."""


@dataclass(frozen=True, kw_only=True)
class SentinelConfig:
    """How often it may be wrong, how long it remembers, and what it watches."""

    responses: int
    """Responses a step (prompts x responses a prompt), 2 or more: a share of few responses scatters more."""
    steps_per_false_alarm: float = 1000.0
    """Steps of healthy training per false alarm, over all signs together but `held_out`, 10 to 1e6. 1,000: a run of 300
    steps is disturbed for nothing once in three."""
    signs: tuple[str, ...] = DEFAULT_DETECTORS
    """Names from `pv_runs.sentinel.detectors.DETECTORS`. Each one more raises the thresholds of all a little."""
    warm_up: int = 10
    """Observations of a sign before it may alarm, 4 or more. The normal scores are right with fewer, but at a run's
    start everything moves at once, and a level that rests on few steps follows that."""
    shift: float = 1.5
    """The shift that the CUSUM is best at, in standard deviations of a step's value, 0.5 to 4; its reference k is half
    of it. 1.5: what a single step can hardly show is found in about ten. Smaller finds slow changes, later."""
    memory: float = 40.0
    """Steps that the level rests on, 3 or more."""
    noise_memory: float = 50.0
    """Steps that the scatter rests on, 5 or more: longer than `memory`, since noise changes slower than levels."""
    cap: float = 4.0
    """No step counts for more than this many standard deviations, 2 to 10, so that one odd batch is no alarm: with the
    defaults an alarm takes two steps."""
    autocorrelation: float = 0.0
    """Of a healthy run's noise from one step to the next, 0 to 0.9. Responses are sampled anew at each step, which
    gives 0; more where steps share prompts or responses. Scores are multiplied by sqrt((1 - r) / (1 + r))."""
    doubling_steps: float = 10.0
    """Steps in which lengths may double and entropy may halve in a healthy run, 1 or more; faster is an alarm, except
    in the first steps (`Detector.drifts`). The quick start's lengths double in 20 steps, most of it in the first 10."""
    held_out_slack: float = 0.10
    """A fall of a slice's held-out balanced accuracy below its best validation that is never an alarm, 0 to 1. A larger
    one has to exceed its noise too. With 1 it is not watched."""
    limits: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """For a sign, the least and the largest value that is right whatever came before, in the sign's own unit, None for
    no bound: `{"missing_verdicts": (None, 0.5)}`. Passing one is an alarm, also during the warm-up."""

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if not _is_number(value) or not low <= value <= high:
                allowed = f"from {low:g} to {high:g}" if high < math.inf else f"of {low:g} or more"
                raise ConfigError(f"sentinel: {name} is {value!r}; give a number {allowed}")
        if not isinstance(self.limits, Mapping):
            raise ConfigError(
                f"sentinel: limits is {self.limits!r:.80}; give (least, largest) by the sign's name"
            )
        listed = isinstance(self.signs, Sequence) and all(isinstance(one, str) for one in self.signs)
        if not listed or isinstance(self.signs, str) or not self.signs:
            raise ConfigError(
                f"sentinel: signs is {self.signs!r}; give a list of one or more of {', '.join(DETECTORS)}"
            )
        if len(set(self.signs)) < len(self.signs):
            raise ConfigError(f"sentinel: signs names one twice: {', '.join(self.signs)}; leave one out")
        object.__setattr__(self, "signs", tuple(self.signs))
        for name in (*self.signs, *self.limits):
            if name not in DETECTORS:
                raise ConfigError(
                    f"sentinel: no sign is called {name!r}.{nearest(str(name), DETECTORS)} "
                    f"Signs: {', '.join(DETECTORS)}"
                )
        for name, bounds in self.limits.items():
            if name not in self.signs:
                raise ConfigError(f"sentinel: limits names {name}, which is not in signs; add it there")
            if not _are_bounds(bounds):
                raise ConfigError(
                    f"sentinel: the limits of {name} are {bounds!r}; give (least, largest), None for no bound"
                )

    @property
    def reference(self) -> float:
        """k of every CUSUM, in standard deviations."""
        return self.shift / 2

    @property
    def drift(self) -> float:
        """Healthy growth of a logarithm, a step."""
        return math.log(2) / self.doubling_steps

    @property
    def memories(self) -> Memories:
        """Of every level."""
        return Memories(kept_level=1 - 1 / self.memory, kept_noise=1 - 1 / self.noise_memory)

    def counted(self, score: float) -> float:
        """What a score counts for: less with noise that hangs together, and never more than the cap."""
        score *= ((1 - self.autocorrelation) / (1 + self.autocorrelation)) ** 0.5
        return max(-self.cap, min(score, self.cap))

    @property
    def run_length(self) -> float:
        """Steps from one false alarm to the next for one side of one sign: rates add up, whatever hangs together."""
        return self.steps_per_false_alarm * sum(len(DETECTORS[name].sides) for name in self.signs)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_bounds(bounds: Any) -> bool:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        return False
    low, high = bounds
    if any(bound is not None and not _is_number(bound) for bound in bounds):
        return False
    return low is None or high is None or low < high
