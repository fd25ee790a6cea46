"""Wrong proofs: eight kinds of error, injected into the right proof of a question.

Six kinds change one step and are carried on honestly to the end; two change the shape of the proof.
Whatever the kind, the value claimed at the step of the error is not the right one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from pv_lab.algebra import Form, Op
from pv_lab.difficulty import Level
from pv_lab.problems import Question, Step, recompute, right_steps

__all__ = ["ERROR_KINDS", "WrongProof", "inject_error"]

Steps = tuple[Step, ...]


@dataclass(frozen=True)
class WrongProof:
    """A proof with its first error: the kind and the number of the step, counted from 1."""

    kind: str
    step: int
    steps: Steps


def constant_slip(rng: Random, step: Step) -> Step:
    """The constant is off by 1 to 9."""
    off = rng.choice((-1, 1)) * rng.randint(1, 9)
    return replace(step, after=Form(step.after.coefficient, step.after.constant + off))


def coefficient_slip(rng: Random, step: Step) -> Step | None:
    """The coefficient of x is off by 1 to 3."""
    if not step.after.coefficient:
        return None
    off = rng.choice((-1, 1)) * rng.randint(1, 3)
    return replace(step, after=Form(step.after.coefficient + off, step.after.constant))


def failed_distribution(rng: Random, step: Step) -> Step | None:
    """The multiplier reaches only the first term."""
    if step.op.kind != "times" or not step.before.coefficient or not step.before.constant:
        return None
    return replace(step, after=Form(step.after.coefficient, step.before.constant))


def sign_error(rng: Random, step: Step) -> Step | None:
    """Added instead of subtracted, or the other way round."""
    if step.op.kind == "times":
        return None
    other = replace(step.op, kind="minus" if step.op.kind == "plus" else "plus")
    return replace(step, after=other.apply(step.before))


def wrong_operand(rng: Random, step: Step) -> Step:
    """Another operand than the question's is copied, and the step is right for that one."""
    low, high = (2, 4) if step.op.kind == "times" else (1, 5) if step.op.of_x else (2, 12)
    operand = rng.choice([n for n in range(low, high + 1) if n != step.op.operand])
    op = Op(step.op.kind, operand, step.op.of_x)
    return Step(step.before, op, op.apply(step.before))


def broken_link(rng: Random, step: Step) -> Step:
    """The step starts from another value than the last result, and is right for that one."""
    off = rng.choice((-1, 1)) * rng.randint(1, 9)
    before = Form(step.before.coefficient, step.before.constant + off)
    return Step(before, step.op, step.op.apply(before))


LOCAL: dict[str, Callable[[Random, Step], Step | None]] = {
    "constant_slip": constant_slip,
    "coefficient_slip": coefficient_slip,
    "failed_distribution": failed_distribution,
    "sign_error": sign_error,
    "wrong_operand": wrong_operand,
    "broken_link": broken_link,
}
ERROR_KINDS = (*LOCAL, "skipped_step", "cancelled")


def _carried_on(rng: Random, kind: str, question: Question, at: int) -> Steps | None:
    """A local error at index `at`, then right steps from the wrong value."""
    right = right_steps(question.start, question.ops)
    bad = LOCAL[kind](rng, right[at])
    return None if bad is None else (*right[:at], bad, *right_steps(bad.after, question.ops[at + 1 :]))


def _skipped(question: Question, at: int) -> Steps | None:
    """The step at index `at`, not the last one, is left out; the next one starts from its result."""
    right = right_steps(question.start, question.ops)
    return None if at == len(right) - 1 else (*right[:at], *right[at + 1 :])


def _cancelled(rng: Random, question: Question, at: int) -> Steps | None:
    """A local error at index `at`; a later step claims the true value again, so the final result is right."""
    wrong = _carried_on(rng, rng.choice(list(LOCAL)), question, at)
    if wrong is None or at == len(wrong) - 1:
        return None
    back = rng.randrange(at + 1, len(wrong))
    right = right_steps(question.start, question.ops)
    return (*wrong[:back], replace(wrong[back], after=right[back].after), *right[back + 1 :])


def _fits(question: Question, steps: Steps, level: Level) -> bool:
    """True if each claimed value is within the level, and each recomputed one has words."""
    algebraic = bool(question.start.coefficient)
    claimed = [form for step in steps for form in (step.before, step.after)]
    return all(
        form.fits(level.max_coefficient, level.max_constant) and bool(form.coefficient) == algebraic
        for form in claimed
    ) and all(form.fits() for form in recompute(question, steps))


def inject_error(rng: Random, question: Question, level: Level) -> WrongProof | None:
    """A wrong proof of `question`, or None if 20 draws of a kind gave none whose numbers stay in the level."""
    for _ in range(20):
        cancel = rng.random() < level.cancelling
        kind = "cancelled" if cancel else rng.choice([kind for kind in ERROR_KINDS if kind != "cancelled"])
        for at in rng.sample(range(len(question.ops)), len(question.ops)):
            if kind == "cancelled":
                steps = _cancelled(rng, question, at)
            elif kind == "skipped_step":
                steps = _skipped(question, at)
            else:
                steps = _carried_on(rng, kind, question, at)
            if steps is not None and _fits(question, steps, level):
                return WrongProof(kind, at + 1, steps)
    return None
