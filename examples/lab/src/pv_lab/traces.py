"""Verification traces for the warm start: short verdicts, and step-by-step checks that make mistakes.

A check of one step recomputes it, copies what the proof says, and compares:

    S2 +14 plus 5 = +19 says +18 bad

A miss writes the claimed value in place of the right one; a false alarm writes a value that is off.
"""

from dataclasses import dataclass, fields
from random import Random

from pv_lab.algebra import Form
from pv_lab.problems import Question, Step, recompute
from pv_rl.errors import DataError

__all__ = ["MODES", "TraceMix", "off_value", "sample_trace"]

MODES = ("bare", "accept", "reject", "long", "verbose", "loop")

LOOKS = 4
"""How often a looping trace looks at the first step; three times are repetitive (`trace_shares.repetitive`)."""

SHORT = {"bare": "### True", "accept": "looks fine ### True", "reject": "looks wrong ### False"}


@dataclass(frozen=True, kw_only=True)
class TraceMix:
    """How often each mode of trace occurs (shares that add up to 1), and how reliable its checks are."""

    bare: float = 0.05
    """Share of `### True` and nothing else."""
    accept: float = 0.47
    """Share of short acceptances, whatever the proof."""
    reject: float = 0.03
    """Share of short rejections, whatever the proof."""
    long: float = 0.33
    """Share of step-by-step checks."""
    verbose: float = 0.12
    """Share of step-by-step checks with second looks."""
    loop: float = 0.0
    """Share of checks that go round at the first step, `LOOKS` times the same words, and are then as reliable as a
    second look: they loop and still end right."""
    miss: float = 0.55
    """Probability that the check of a wrong step agrees with it."""
    false_alarm: float = 0.06
    """Probability that the check of a right step disagrees with it."""
    second_look: float = 0.95
    """Probability that a second look is right, whatever the first one was."""
    relook: float = 0.1
    """Probability that a verbose trace looks again at a step that seemed right."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value <= 1:
                raise DataError(f"{field.name}={value!r} is no probability; give a number from 0 to 1")
        total = sum(getattr(self, mode) for mode in MODES)
        if abs(total - 1) > 1e-6:
            raise DataError(f"the shares of {', '.join(MODES)} add up to {total:.3f}; they must add up to 1")


def sample_trace(rng: Random, question: Question, steps: tuple[Step, ...], mix: TraceMix) -> tuple[str, str]:
    """Draw a mode and a trace of it for one proof: `(text, mode)`. The text ends in the verdict."""
    mode = rng.choices(MODES, [getattr(mix, mode) for mode in MODES])[0]
    if mode in SHORT:
        return SHORT[mode], mode
    if mode == "loop":
        return _looping(rng, question, steps, mix), mode
    return _checked(rng, question, steps, mix, verbose=mode == "verbose"), mode


def _checked(
    rng: Random, question: Question, steps: tuple[Step, ...], mix: TraceMix, *, verbose: bool
) -> str:
    """Check the steps in order until one seems wrong; a verbose trace looks twice before it says so."""
    parts = ["check"]
    for i, right in enumerate(recompute(question, steps)):
        wrong = i >= len(steps) or steps[i].after != right
        text, fine = _look(
            rng, question, steps, i, right, mistaken=rng.random() < (mix.miss if wrong else mix.false_alarm)
        )
        parts.append(text)
        if verbose and (not fine or rng.random() < mix.relook):
            text, fine = _look(rng, question, steps, i, right, mistaken=rng.random() >= mix.second_look)
            parts += ["wait", text]
        if not fine:
            return " ".join([*filter(None, parts), f"so S{i + 1} wrong ### False"])
    return " ".join([*filter(None, parts), "so all fine ### True"])


def _looping(rng: Random, question: Question, steps: tuple[Step, ...], mix: TraceMix) -> str:
    """The first look says the same `LOOKS` times over. Nothing new is learned by that, and the rest is a good check."""
    parts = ["check"]
    for i, right in enumerate(recompute(question, steps)):
        text, fine = _look(rng, question, steps, i, right, mistaken=rng.random() >= mix.second_look)
        parts += [text] if i else [" wait ".join([text] * LOOKS)]
        if not fine:
            return " ".join([*filter(None, parts), f"so S{i + 1} wrong ### False"])
    return " ".join([*filter(None, parts), "so all fine ### True"])


def _look(
    rng: Random, question: Question, steps: tuple[Step, ...], i: int, right: Form, *, mistaken: bool
) -> tuple[str, bool]:
    """The check of step `i`, and whether it found the step right. A missing step can be overlooked."""
    before = steps[i - 1].after if i else question.start
    head = f"S{i + 1} {before} {question.ops[i]} ="
    if i >= len(steps):
        return ("", True) if mistaken else (f"{head} {right} says nothing bad", False)
    claimed = steps[i].after
    got = right
    if mistaken:
        got = claimed if claimed != right else off_value(rng, right)
    return f"{head} {got} says {claimed} {'ok' if got == claimed else 'bad'}", got == claimed


def off_value(rng: Random, form: Form) -> Form:
    """`form` with its constant off by 1 to 3."""
    while True:
        off = Form(form.coefficient, form.constant + rng.choice((-3, -2, -1, 1, 2, 3)))
        if off.fits():
            return off
