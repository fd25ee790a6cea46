"""Difficulty: one number from 1 to 5 that sets proof length, size of numbers and kinds of errors."""

from dataclasses import dataclass

from pv_rl.errors import DataError

__all__ = ["LEVELS", "MAX_STEPS", "Level", "level_of"]


@dataclass(frozen=True, kw_only=True)
class Level:
    """What questions and proofs of one difficulty look like."""

    min_steps: int
    """Fewest operations of a question, 2 or more."""
    max_steps: int
    """Most operations of a question, up to 6."""
    max_constant: int
    """Largest magnitude of a constant, up to `algebra.MAX_CONSTANT`."""
    max_coefficient: int
    """Largest magnitude of a coefficient of x, up to `algebra.MAX_COEFFICIENT`."""
    algebraic: float
    """Share of questions about `a x + b` with a != 0, whose steps are all algebraic; others are arithmetic."""
    cancelling: float
    """Share of wrong proofs whose first error is cancelled by a later one."""


LEVELS = {
    1: Level(min_steps=2, max_steps=3, max_constant=30, max_coefficient=9, algebraic=0.25, cancelling=0.0),
    2: Level(min_steps=3, max_steps=4, max_constant=40, max_coefficient=9, algebraic=0.5, cancelling=0.15),
    3: Level(min_steps=4, max_steps=5, max_constant=50, max_coefficient=12, algebraic=0.6, cancelling=0.25),
    4: Level(min_steps=5, max_steps=6, max_constant=70, max_coefficient=16, algebraic=0.8, cancelling=0.35),
    5: Level(min_steps=6, max_steps=6, max_constant=99, max_coefficient=20, algebraic=1.0, cancelling=0.5),
}

MAX_STEPS = max(level.max_steps for level in LEVELS.values())


def level_of(difficulty: int) -> Level:
    """The `Level` of a difficulty, or a `DataError` that says which ones exist."""
    if difficulty not in LEVELS:
        raise DataError(f"difficulty {difficulty!r} does not exist; use one of {', '.join(map(str, LEVELS))}")
    return LEVELS[difficulty]
