"""English wording of the lab's task: the question to a language model, and checks of a proof step by step.

Step 2: +18 minus 5 gives +13, but the proof says +14. That is an error.
The first error is in step 2.
### False
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pv_lab.problems import recompute
from pv_lab.samples import Sample
from pv_lab.traces import TraceMix, off_value

__all__ = ["EXACT", "WEAK", "ask", "ask_about", "check"]

TASK = (
    "Check this proof: go through its steps, then end with a line that is ### True if all of it is right, and "
    "### False if anything is wrong."
)
ONLY_CHECKS = {"bare": 0.0, "reject": 0.0, "verbose": 0.0}
EXACT = TraceMix(**ONLY_CHECKS, accept=0.0, long=1.0, miss=0.0, false_alarm=0.0)
"""Every step is checked, and every check is right."""
WEAK = TraceMix(**ONLY_CHECKS, accept=0.5, long=0.5, miss=0.5, false_alarm=0.05)
"""Half of the traces accept without a look; the others miss half of the wrong steps and doubt 5 % of the right ones."""
ACCEPTING = ("The steps look fine.", "This looks right to me.", "Nothing stands out.")


def ask(question: str, steps: Sequence[str], claimed: str = "") -> str:
    """The user's message: the task, the question, numbered steps and the claimed result, if there is one."""
    numbered = [f"Step {number}: {step}" for number, step in enumerate(steps, start=1)]
    end = [f"Claimed result: {claimed}."] if claimed else []
    return "\n".join([TASK, "", question, "Proof:", *numbered, *end])


def ask_about(sample: Sample) -> str:
    """The user's message for a proof of the lab."""
    question = (
        f"Start with {sample.question.start} and apply, in order: {', '.join(map(str, sample.question.ops))}."
    )
    return ask(question, [str(step) for step in sample.steps], str(sample.steps[-1].after))


def check(rng: Random, sample: Sample, mix: TraceMix) -> str:
    """Draw an assistant's answer: a short acceptance, or a check of each step until one seems wrong.

    Args:
        rng: of the draw.
        sample: the proof.
        mix: `accept`, `miss` and `false_alarm` count here; every other trace is a check.
    """
    if rng.random() < mix.accept:
        return f"{rng.choice(ACCEPTING)}\n### True"
    lines = []
    for number, right in enumerate(recompute(sample.question, sample.steps), start=1):
        before = sample.steps[number - 2].after if number > 1 else sample.question.start
        op = sample.question.ops[number - 1]
        claimed = sample.steps[number - 1].after if number <= len(sample.steps) else None
        mistaken = rng.random() < (mix.false_alarm if claimed == right else mix.miss)
        if claimed is None:
            if mistaken:
                continue
            lines.append(f"Step {number} is missing: {before} {op} should give {right}. That is an error.")
        else:
            got = right if not mistaken else off_value(rng, right) if claimed == right else claimed
            if got == claimed:
                lines.append(
                    f"Step {number}: {before} {op} gives {got}, and the proof says {claimed}. That is right."
                )
                continue
            lines.append(
                f"Step {number}: {before} {op} gives {got}, but the proof says {claimed}. That is an error."
            )
        return "\n".join([*lines, f"The first error is in step {number}.", "### False"])
    return "\n".join([*lines, "All steps are right.", "### True"])
