"""Cost of a verdict: tokens of prompt and answer, and USD where prices are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pv_eval.run_files import RunInfo
from pv_eval.votes import Vote
from pv_judge.answer import Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.config import JudgeConfig

__all__ = ["Cost", "add_usage", "cost_of", "usd_of"]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Means over votes; NaN where no vote has the number."""

    usd: float = math.nan
    prompt_tokens: float = math.nan
    answer_tokens: float = math.nan
    unpriced: int = 0
    """Votes without a price: failed requests, or all of them."""

    @property
    def tokens(self) -> float:
        """Of prompt and answer."""
        return self.prompt_tokens + self.answer_tokens

    def __bool__(self) -> bool:
        return bool(str(self))

    def __str__(self) -> str:
        parts = [f"${self.usd:.3g}"] if self.usd == self.usd else []
        tokens = ((self.prompt_tokens, "prompt"), (self.answer_tokens, "answer"))
        parts += [f"{number:,.0f} {what} tokens" for number, what in tokens if number == number]
        return ", ".join(parts)


def usd_of(usage: Usage, client: JudgeConfig) -> float | None:
    """What a request cost; None where the model has no price or the server counted no tokens."""
    if client.unpriced or not usage.prompt_tokens + usage.completion_tokens:
        return None
    return BudgetKeeper(client.budget, client.prices).usd(client.endpoints[0].model, usage)


def add_usage(usages: Iterable[Usage]) -> dict[str, int]:
    """Sums over the requests whose tokens the server counted, as run.json keeps them under `settings.usage`."""
    counted = [one for one in usages if one.prompt_tokens + one.completion_tokens]
    return {
        "requests": len(counted),
        "prompt_tokens": sum(one.prompt_tokens for one in counted),
        "completion_tokens": sum(one.completion_tokens for one in counted),
    }


def cost_of(votes: Iterable[Vote], info: RunInfo) -> Cost:
    """Mean cost of a verdict of a run.

    A vote has the length of its answer and its price; tokens of prompts are in `settings.usage`, which a run of a
    recorded file does not have.
    """
    listed = list(votes)
    prices = [vote.usd for vote in listed if vote.usd is not None]
    lengths = [vote.length for vote in listed if vote.length is not None and info.length_unit == "tokens"]
    usage = info.settings.get("usage")
    return Cost(
        usd=math.fsum(prices) / len(prices) if prices else math.nan,
        prompt_tokens=_prompt_tokens(usage) if isinstance(usage, Mapping) else math.nan,
        answer_tokens=math.fsum(lengths) / len(lengths) if lengths else math.nan,
        unpriced=len(listed) - len(prices),
    )


def _prompt_tokens(usage: Mapping[str, Any]) -> float:
    requests, tokens = usage.get("requests"), usage.get("prompt_tokens")
    known = type(requests) is int and type(tokens) is int and requests > 0 and tokens >= 0
    return tokens / requests if known else math.nan
