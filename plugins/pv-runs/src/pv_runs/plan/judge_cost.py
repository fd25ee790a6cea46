"""What the judge is asked and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from pv_judge.answer import Usage
from pv_judge.budget import BudgetKeeper
from pv_runs.plan.judge_settings import JudgeSettings
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts

__all__ = ["JudgeCost", "judge_cost"]


@dataclass(frozen=True, kw_only=True)
class JudgeCost:
    """Of one question a response. Retries and a second request (`hedging`) come on top; what rules veto goes off."""

    model: str | None
    """None: an environment variable names it that is not set here."""
    calls: int
    """A step, at most: every response that no rule vetoes is asked about."""
    run_calls: int | None
    """None where the run's steps are not known."""
    input_tokens: float
    """Of one question about a response of mean length."""
    instruction_tokens: float
    """Those of them that are the same in every question, so that a server can have them cached."""
    output_tokens: float
    """Of one answer."""
    step_usd: float | None
    """Expected, without any cached token; None: the config has no price."""
    step_usd_cached: float | None
    """The same if the server has the instructions cached."""
    run_usd: float | None
    """`step_usd` over the run."""
    longest_step_usd: float | None
    """Of a step whose responses are all of the longest, with answers of `max_tokens`: the most that it can cost."""


def judge_cost(setup: Setup, counts: Counts, judge: JudgeSettings) -> JudgeCost:
    """Count and price.

    Tokens of instructions are their characters over `characters_per_token`. A response counts the policy's own tokens;
    the judge's tokenizer makes some more or fewer of it.

    Example: instructions of 480 tokens, a frame of 30, a response of 778, an answer of 60, at 0.56 and 1.68 USD a
    million: (1,288 x 0.56 + 60 x 1.68) / 1e6 = 0.00082 USD a call, and 0.40 USD a step of 480.
    """
    assumed, per = setup.assumed, setup.assumed.characters_per_token
    instructions, frame = len(judge.instructions) / per, len(judge.frame) / per
    asked = instructions + frame + assumed.response_tokens
    longest = instructions + frame + setup.batch.max_response
    step = _usd(judge, counts.rollouts, asked, assumed.judge_output_tokens)
    return JudgeCost(
        model=judge.model,
        calls=counts.rollouts,
        run_calls=None if counts.steps is None else counts.rollouts * counts.steps,
        input_tokens=asked,
        instruction_tokens=instructions,
        output_tokens=assumed.judge_output_tokens,
        step_usd=step,
        step_usd_cached=_usd(judge, counts.rollouts, asked, assumed.judge_output_tokens, instructions),
        run_usd=None if step is None or counts.steps is None else step * counts.steps,
        longest_step_usd=_usd(judge, counts.rollouts, longest, judge.max_answer_tokens),
    )


def _usd(
    judge: JudgeSettings, calls: int, asked: float, answered: float, cached: float = 0.0
) -> float | None:
    """By the table of prices that the run itself is held to."""
    if judge.model is None or judge.price is None:
        return None
    keeper = BudgetKeeper(judge.budget, {judge.model: judge.price})
    usage = Usage(
        prompt_tokens=round(calls * asked),
        completion_tokens=round(calls * answered),
        cached_tokens=round(calls * cached),
    )
    return keeper.usd(judge.model, usage)
