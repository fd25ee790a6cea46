"""The reward `brevity`: 1 up to a number of words, then less and less."""

from __future__ import annotations

from pv_rl.errors import ConfigError
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards import RewardInput, RewardOutput


class Brevity:
    """`min(1, words / n)` for a trace of n words.

    Example: words 100: a trace of 50 words earns 1, one of 400 words earns 0.25.

    Args:
        words: how many are free, > 0.
    """

    def __init__(self, words: float = 200) -> None:
        if isinstance(words, bool) or not isinstance(words, int | float) or not words > 0:
            raise ConfigError(f"brevity.words: {words!r}; it is a number of words above 0")
        self.words = words

    async def score(self, sample: RewardInput) -> RewardOutput:
        count = len(sample.response.split())
        return RewardOutput(score=min(1.0, self.words / max(count, 1)), metrics={"words": float(count)})


@hookimpl
def pv_rl_rewards() -> list[RewardEntry]:
    return [RewardEntry(name="brevity", build=Brevity, meaning="1 up to a number of words, then less")]
