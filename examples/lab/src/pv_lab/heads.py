"""Rewards beside the verdict: what a trace earns for the first wrong step, or for a grade.

Both are read from the step that a trace names, `so S3 wrong ### False`, so every verifier of the lab can earn them.
`run=lab reward=first_error` and `run=lab reward=grade` have the same formats and options (hydra_configs/lab_reward).
"""

from __future__ import annotations

from functools import lru_cache

from pv_lab.difficulty import MAX_STEPS
from pv_lab.samples import Sample
from pv_lab.tokenizer import EOS, VOCABULARY, WORDS
from pv_verdicts import Answer, build_format

__all__ = ["GRADES", "HEADS", "answer_of", "grade_of", "paid_for"]

PATTERN = r"S(\d+) wrong"
GRADES = tuple(range(1, MAX_STEPS + 2))
"""Points of a proof: the number of its first wrong step, or full points."""
HEADS = {
    "verdict": build_format("verdict"),
    "first_error": build_format("first_error", {"pattern": PATTERN}),
    "grade": build_format("grade", {"grades": GRADES, "pattern": PATTERN}),
}


def grade_of(sample: Sample) -> int:
    """Points of a proof, 1 to 7. Example: 3 if its first wrong step is S3, 7 if it is right."""
    return sample.error_step or GRADES[-1]


@lru_cache(maxsize=2**18)
def answer_of(head: str, trace: tuple[int, ...]) -> Answer:
    """What a trace concludes.

    Args:
        head: one of `HEADS`.
        trace: ids, with the end mark or without.
    """
    return HEADS[head].read(" ".join(WORDS[i] for i in trace if i != VOCABULARY[EOS]))


def paid_for(head: str, trace: tuple[int, ...], sample: Sample) -> float:
    """Reward of a trace, 0 to 1.

    Example: `so S3 wrong ### False` for a proof whose first wrong step is S2 earns 1 by its verdict, 0 by its step and
    1 - 1/7 by its grade.
    """
    truths = {"verdict": sample.label, "first_error": sample.error_step, "grade": grade_of(sample)}
    form = HEADS[head]
    return form.score(answer_of(head, trace), form.read_truth(truths[head]))
