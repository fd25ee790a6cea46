"""Questions (a start and a chain of operations), right proofs of them, and the text of both.

A question belongs to one split for good: which one is a hash of its text, so no seed or size can put it
into both.
"""

import hashlib
from dataclasses import dataclass
from random import Random

from pv_lab.algebra import OP_KINDS, Form, Op
from pv_lab.difficulty import Level

__all__ = ["TEST_SHARE", "Question", "Step", "recompute", "right_steps", "sample_question", "task_text"]

TEST_SHARE = 8
"""One question in this many belongs to the test split."""


@dataclass(frozen=True)
class Step:
    """One line of a proof: it takes up `before`, applies `op`, and claims `after`."""

    before: Form
    op: Op
    after: Form

    def __str__(self) -> str:
        return f"{self.before} {self.op} = {self.after}"


@dataclass(frozen=True)
class Question:
    """A start and the operations to apply to it, in order."""

    start: Form
    ops: tuple[Op, ...]

    def __str__(self) -> str:
        return f"from {self.start} {' '.join(map(str, self.ops))}"

    @property
    def digest(self) -> str:
        """Twelve hex digits that identify the question; the stated result is not part of it."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:12]

    @property
    def split(self) -> str:
        """ "test" for one question in `TEST_SHARE`, else "train"."""
        return "test" if int(self.digest, 16) % TEST_SHARE == 0 else "train"


def sample_question(rng: Random, level: Level, split: str) -> Question:
    """Draw questions of `level` until one belongs to `split`."""
    while True:
        algebraic = rng.random() < level.algebraic
        value = start = Form(
            rng.choice((-4, -3, -2, 2, 3, 4)) if algebraic else 0, rng.choice((-1, 1)) * rng.randint(1, 12)
        )
        ops: list[Op] = []
        num_steps = rng.randint(level.min_steps, level.max_steps)
        while len(ops) < num_steps:
            op = _sample_op(rng, algebraic)
            after = op.apply(value)
            stays_algebraic = bool(after.coefficient) == algebraic
            if after != value and stays_algebraic and after.fits(level.max_coefficient, level.max_constant):
                ops.append(op)
                value = after
        question = Question(start, tuple(ops))
        if question.split == split:
            return question


def _sample_op(rng: Random, algebraic: bool) -> Op:
    kind = rng.choice(OP_KINDS)
    if kind == "times":
        return Op(kind, rng.randint(2, 4))
    if algebraic and rng.random() < 0.5:
        return Op(kind, rng.randint(1, 5), of_x=True)
    return Op(kind, rng.randint(2, 12))


def right_steps(start: Form, ops: tuple[Op, ...]) -> tuple[Step, ...]:
    """Apply `ops` to `start` one after the other, without a mistake."""
    steps: list[Step] = []
    for op in ops:
        before = steps[-1].after if steps else start
        steps.append(Step(before, op, op.apply(before)))
    return tuple(steps)


def recompute(question: Question, steps: tuple[Step, ...]) -> list[Form]:
    """What a checker gets for each operation: the question's operation on the value claimed just before.

    It goes on from what the proof claims, so that one mistake shows in one place. A proof may lack its
    last step; it is never longer than the question.
    """
    befores = [question.start, *(step.after for step in steps)]
    return [op.apply(before) for op, before in zip(question.ops, befores, strict=False)]


def task_text(question: Question, steps: tuple[Step, ...]) -> str:
    """Question, stated result and proof, one word a token.

    The stated result is the one that the proof arrives at: comparing the two tells nothing.
    """
    proof = " ".join(f"S{i} {step}" for i, step in enumerate(steps, 1))
    return f"{question} show {steps[-1].after} proof {proof}"
