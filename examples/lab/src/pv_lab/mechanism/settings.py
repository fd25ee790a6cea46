"""Settings of a run: the proofs, the verifier's initial habits, and the training."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from pv_rl.errors import ConfigError

__all__ = ["Setting"]

SHARES = ("p_true", "short", "recheck")
OPEN = ("miss", "false_alarm", "again", "lost", "kept")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One world and one way to train in it. The defaults are the main setting (docs/studies/mechanism.md)."""

    p_true: float = 0.59
    """Share of proofs that are right, in [0, 1]."""
    short: float = 0.5
    """Share of responses that accept at once, before training; with `recheck` less than 1."""
    recheck: float = 0.12
    """Share of responses that check repeatedly, before training. The rest, `1 - short - recheck`, check once."""
    miss: float = 0.93
    """Probability that a look at the wrong step sees nothing, before training, in (0, 1)."""
    false_alarm: float = 0.104
    """Probability that a look at a right step sees an error, before training, in (0, 1)."""
    again: float = 0.6
    """Probability that a repeated check starts over after a pass without an alarm, before training, in (0, 1)."""
    lost: float = 0.02
    """Probability that the second look drops an alarm at the wrong step, before training, in (0, 1)."""
    kept: float = 0.02
    """Probability that the second look keeps an alarm at a right step, before training, in (0, 1)."""
    steps_low: int = 3
    """Fewest steps of a proof, 1 or more."""
    steps_high: int = 8
    """Most steps of a proof; each number from `steps_low` on is as likely."""
    max_length: int = 400
    """Tokens after which a response is cut off and earns nothing, 20 or more."""
    learning_rate: float = 20.0
    """Step size of plain gradient ascent on the logits, above 0."""
    skill_rate: float = 0.2
    """Step size of the four logits of reliability as a share of `learning_rate`, 0 or more. Below 1, a verifier changes
    its habits sooner than it learns to look well."""
    prompts: int = 64
    """Prompts of a training step, P, 1 or more."""
    group: int = 8
    """Responses of a prompt, G, 2 or more."""
    train_steps: int = 200
    """Training steps, 1 or more."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                kind = "a whole number" if whole else "a number"
                raise ConfigError(f"{field.name}={value!r} is not {kind}; give {kind}")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)} is no share; give a number from 0 to 1")
        for name in OPEN:
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}={getattr(self, name)} has no logit; give a probability above 0 and below 1"
                )
        if not (self.short > 0 and self.recheck > 0 and self.short + self.recheck < 1):
            raise ConfigError(
                f"short={self.short} and recheck={self.recheck} leave a behaviour without probability, and what is "
                "never tried cannot be learned; give two shares above 0 whose sum is below 1"
            )
        if not 1 <= self.steps_low <= self.steps_high:
            raise ConfigError(
                f"proofs of steps_low={self.steps_low} to steps_high={self.steps_high} steps do not exist; "
                "give 1 <= steps_low <= steps_high"
            )
        for name, least in (("max_length", 20), ("prompts", 1), ("group", 2), ("train_steps", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)} is too small; give {least} or more")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise ConfigError(f"learning_rate={self.learning_rate} teaches nothing; give a number above 0")
        if not (self.skill_rate >= 0 and math.isfinite(self.skill_rate)):
            raise ConfigError(
                f"skill_rate={self.skill_rate} is no share of a rate; give a number of 0 or more"
            )
