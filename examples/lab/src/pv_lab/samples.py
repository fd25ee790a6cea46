"""Sample: a question, a proof of it and the label, each determined by (seed, split, index) alone."""

from dataclasses import dataclass
from math import floor
from random import Random

from pv_lab.difficulty import level_of
from pv_lab.errors import inject_error
from pv_lab.problems import Question, Step, right_steps, sample_question, task_text
from pv_rl.errors import DataError

__all__ = ["SPLITS", "Sample", "make_sample"]

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Sample:
    """A proof to be verified and the truth about it."""

    question: Question
    steps: tuple[Step, ...]
    label: bool
    """True if the proof is right."""
    error_kind: str
    """One of `errors.ERROR_KINDS`, or "none"."""
    error_step: int
    """Number of the first wrong step, counted from 1; 0 if there is none."""

    @property
    def text(self) -> str:
        """The task as the verifier reads it."""
        return task_text(self.question, self.steps)


def make_sample(
    *, seed: int, split: str, index: int, difficulty: int, p_true: float, proofs_per_question: int = 1
) -> Sample:
    """Sample number `index` of a split. Each run of `proofs_per_question` indices shares its question.

    The first n samples hold floor(n * p_true) right proofs: the share of labels is exact, not drawn.
    """
    if split not in SPLITS:
        raise DataError(f"split {split!r} does not exist; use one of {', '.join(SPLITS)}")
    if not 0 <= p_true <= 1:
        raise DataError(f"p_true={p_true!r} is no share; give a number from 0 to 1")
    if proofs_per_question < 1:
        raise DataError(f"proofs_per_question={proofs_per_question!r} is too small; give 1 or more")
    level = level_of(difficulty)
    label = floor((index + 1) * p_true + 1e-9) > floor(index * p_true + 1e-9)
    attempt = 0
    while True:  # a question has wrong proofs whose numbers stay within the level but for rare cases
        key = f"pv-rl lab {seed} {split} {difficulty}"
        question = sample_question(Random(f"{key} {index // proofs_per_question} {attempt}"), level, split)
        if label:
            return Sample(question, right_steps(question.start, question.ops), True, "none", 0)
        wrong = inject_error(Random(f"{key} proof {index} {attempt}"), question, level)
        if wrong is not None:
            return Sample(question, wrong.steps, False, wrong.kind, wrong.step)
        attempt += 1
