"""Judge cost: calls, tokens and USD of a step and of the run, compared with the budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_judge.answer import Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.config import Budget, Price, read_config
from pv_judge.fluency import FluencyPrompt
from pv_judge.hydra_errors import unreadable
from pv_rl.errors import ConfigError
from pv_runs.plan.findings import Finding, note, warning
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts
from pv_runs.typed_config import Settings

__all__ = ["JudgeCost", "JudgeSettings", "judge_cost", "judge_findings", "read_judge"]


KWARGS = "reward.custom_reward_function.reward_kwargs"
JUDGE = f"{KWARGS}.judge"


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """What a call costs, and what may be spent."""

    model: str | None
    """The first endpoint's; None: it is named by an environment variable that is not set here."""
    price: Price | None
    """None: the config has no price for the model."""
    budget: Budget
    instructions: str
    """The system message."""
    frame: str
    """The user message around an empty trace."""
    max_answer_tokens: int
    """`sampling.max_tokens`."""
    judges_unpaid: bool
    """Whether a response that earns nothing anyway is judged (`judge_unpaid`)."""
    served_here: bool
    """verl serves the judge, on GPUs of the run (`url: router`)."""


def read_judge(settings: Settings) -> JudgeSettings | None:
    """Read it; None where the rules alone decide.

    Raises:
        ConfigError: a setting is not what it should be.
    """
    node = _select(settings, JUDGE)
    if node is None:
        return None
    endpoints = _select(settings, f"{JUDGE}.endpoints")
    if not isinstance(node, DictConfig) or not isinstance(endpoints, ListConfig) or not endpoints:
        raise ConfigError(
            f"{JUDGE} has no endpoints; choose a judge, for example judge=deepseek, or judge=rules for none"
        )
    model = _known(settings, f"{JUDGE}.endpoints[0].model")
    prices: dict[str, Any] = settings.value(f"{JUDGE}.prices", {})
    price = prices.get(model) if model is not None else None
    prompt = FluencyPrompt.load(settings.value(f"{KWARGS}.prompt", None))
    messages = prompt.messages("")
    return JudgeSettings(
        model=model,
        price=None if price is None else read_config(price, Price, f"judge.prices.{model}"),
        budget=read_config(settings.value(f"{JUDGE}.budget", {}), Budget, "judge.budget"),
        instructions=messages[0]["content"],
        frame=messages[1]["content"],
        max_answer_tokens=settings.integer(f"{JUDGE}.sampling.max_tokens", 400, least=1),
        judges_unpaid=settings.flag(f"{KWARGS}.judge_unpaid", True),
        served_here=_known(settings, f"{JUDGE}.endpoints[0].url") == "router",
    )


def _select(settings: Settings, key: str) -> Any:
    """A node as it stands, unresolved."""
    try:
        return OmegaConf.select(settings.config, key)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{key} cannot be read: {unreadable(error)}") from None


def _known(settings: Settings, key: str) -> str | None:
    """A text; None where it is taken from an environment variable that is not set."""
    try:
        found = OmegaConf.select(settings.config, key)
    except OmegaConfBaseException:  # the plan says so and goes on: the rest does not depend on it
        return None
    return None if found is None else str(found)


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


def judge_findings(judge: JudgeSettings, cost: JudgeCost) -> Iterator[Finding]:
    """Whether the budget is likely to be reached, and what the price leaves out.

    A limit that the expected cost reaches is a warning; one that only the longest responses reach is a note.
    """
    budget = judge.budget
    expected: tuple[tuple[str, float | None, float | None], ...] = (
        ("usd_per_step", budget.usd_per_step, cost.step_usd),
        ("usd_per_run", budget.usd_per_run, cost.run_usd),
        ("calls_per_step", budget.calls_per_step, cost.calls),
        ("calls_per_run", budget.calls_per_run, cost.run_calls),
    )
    for name, limit, needed in expected:
        if limit is not None and needed is not None and needed > limit:
            yield warning(
                f"the judge's {name} is {limit:g} and {needed:.4g} are expected: what comes after it is not "
                "judged (on_budget)",
                f"++{JUDGE}.budget.{name}={max(1.0, 2 * needed):.0f}",
            )
    limit, longest, step = budget.usd_per_step, cost.longest_step_usd, cost.step_usd
    if limit is not None and longest is not None and step is not None and step <= limit < longest:
        text = f"a step of the longest responses could take {longest:.3g}"
        yield note(f"the judge's usd_per_step is {limit:g}; {text}")
    if judge.model is None:
        yield note(
            "an environment variable that is not set here names the judge's model, so no price is known"
        )
    elif judge.price is None:
        yield note(f"the config has no price of the judge's model {judge.model} ({JUDGE}.prices)")
    if judge.served_here:
        yield note("verl serves the judge; its GPUs (reward.reward_model) and its time are not counted")
    if not judge.judges_unpaid:
        yield note("judge_unpaid is off, so only responses with a reward are asked about: fewer")
