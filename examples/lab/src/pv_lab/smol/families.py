"""Families of held-out proofs that the model is never trained on: a story of points, and equations to solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random

from pv_lab.problems import Step
from pv_lab.samples import Sample, make_sample
from pv_lab.smol.wording import ask

__all__ = ["FAMILIES", "Proof", "equation", "story"]

SEED = 1_000_003
"""Of held-out proofs, whatever the seed of a run."""
EQUATIONS = list(product(range(1, 6), range(2, 7), (-9, -7, -4, -2, 3, 5, 8), (-6, -5, -3, -2, 2, 3, 4, 7)))
"""c, a - c, b and x of every equation, in an order without a pattern."""
Random(SEED).shuffle(EQUATIONS)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A proof to be checked, in words, and whether it is right."""

    message: str
    label: bool


def story(index: int) -> Proof:
    """The lab's arithmetic of difficulty 2, as points of a team."""
    at = 0
    while True:  # half of the samples are algebraic, and have no story
        sample = make_sample(seed=SEED + 1 + at, split="test", index=index, difficulty=2, p_true=0.5)
        if not sample.question.start.coefficient:
            return _told(sample)
        at += 1


def _told(sample: Sample) -> Proof:
    deeds = {"plus": "wins {} points", "minus": "loses {} points", "times": "has its points multiplied by {}"}
    events = ", then it ".join(deeds[op.kind].format(op.operand) for op in sample.question.ops)
    question = (
        f"A team has {sample.question.start.constant} points. It {events}. How many points does it have?"
    )
    return Proof(
        message=ask(
            question, [_deed(step) for step in sample.steps], f"{sample.steps[-1].after.constant} points"
        ),
        label=sample.label,
    )


def _deed(step: Step) -> str:
    before, after = step.before.constant, step.after.constant
    changes = {
        "plus": f"With {step.op.operand} points more than {before}",
        "minus": f"With {step.op.operand} points less than {before}",
        "times": f"With {step.op.operand} times {before} points",
    }
    return f"{changes[step.op.kind]} it has {after} points."


def equation(index: int) -> Proof:
    """`a x + b = c x + d` in three steps; a wrong one has a slip in one of them and no other after it.

    The first 1,400 are different.
    """
    c, k, b, x = EQUATIONS[index % len(EQUATIONS)]
    rng = Random(f"pv-rl smol equation {SEED} {index}")
    slip_at, slip = 0 if index % 2 else rng.randint(1, 3), rng.choice((-2, -1, 1, 2))
    d = k * x + b
    right_side = d + (k * slip if slip_at == 1 else 0)
    moved = right_side - b + (k * slip if slip_at == 2 else 0)
    found = moved // k + (slip if slip_at == 3 else 0)
    steps = [
        f"Subtract {c}x from both sides: {k}x {b:+d} = {right_side}.",
        f"{'Subtract' if b > 0 else 'Add'} {abs(b)} {'from' if b > 0 else 'to'} both sides: {k}x = {moved}.",
        f"Divide both sides by {k}: x = {found}.",
    ]
    return Proof(
        message=ask(f"Solve {c + k}x {b:+d} = {c}x {d:+d}.", steps, f"x = {found}"), label=not slip_at
    )


FAMILIES: Mapping[str, Callable[[int], Proof]] = {"story": story, "equation": equation}
"""By name: the proof of a number."""
