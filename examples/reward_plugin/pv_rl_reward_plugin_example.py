"""Two rewards: `brevity`, 1 up to a number of words, then less; `final_number`, 1 for the right number at the end."""

from __future__ import annotations

import re
from fractions import Fraction

from pv_rl.errors import ConfigError, DataError
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards import RewardInput, RewardOutput

NUMBER = re.compile(r"(?:(?<![\w.])-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:/\d+|\.\d+)?", re.ASCII)


class Brevity:
    """`min(1, words / n)` for a trace of n words.

    Example: words 100: a trace of 50 words earns 1, one of 400 words earns 0.25.

    Args:
        words: how many are free, > 0.
    """

    label_kind = "any"  # it does not look at the label

    def __init__(self, words: float = 200) -> None:
        if isinstance(words, bool) or not isinstance(words, int | float) or not words > 0:
            raise ConfigError(f"brevity.words: {words!r}; it is a number of words above 0")
        self.words = words

    async def score(self, sample: RewardInput) -> RewardOutput:
        count = len(sample.response.split())
        return RewardOutput(score=min(1.0, self.words / max(count, 1)), metrics={"words": float(count)})


class FinalNumber:
    """1 if the last number of the response equals the ground truth, else 0.

    Example: ground truth `1,000`: "990 + 10 = 1000." earns 1. Ground truth `3/4`: "It is 0.75" earns 1.
    """

    label_kind = (
        "text"  # the ground truth as the data file has it, `72`; without this it would have to be a verdict
    )
    metric_names = ("acc", "number_missing")  # which a row without a truth has too

    async def score(self, sample: RewardInput) -> RewardOutput:
        truth = last_number(sample.label)
        if truth is None:  # the row gets no reward, and is counted
            raise DataError(f"the ground truth {sample.label!r} has no number in it")
        found = last_number(sample.response)
        right = float(found == truth)
        return RewardOutput(score=right, metrics={"acc": right, "number_missing": float(found is None)})


def last_number(text: str) -> Fraction | None:
    """The last number of a text, or None; what has more than 40 characters or divides by 0 is not one."""
    last = (NUMBER.findall(text) or [""])[-1]
    try:
        return Fraction(last.replace(",", "")) if 0 < len(last) <= 40 else None
    except ZeroDivisionError:
        return None


@hookimpl
def pv_rl_rewards() -> list[RewardEntry]:
    return [
        RewardEntry(
            name="brevity", build=Brevity, cheap=True, meaning="1 up to a number of words, then less"
        ),
        RewardEntry(
            name="final_number",
            build=FinalNumber,
            cheap=True,  # so that a run checks options and labels before it starts
            meaning="1 if the last number is the ground truth",
        ),
    ]
