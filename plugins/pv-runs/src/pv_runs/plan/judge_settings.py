"""The judge's part of a composed config, without the keys and addresses that may not be set yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_judge.config import Budget, Price, read_config
from pv_judge.fluency import FluencyPrompt
from pv_rl.errors import ConfigError
from pv_runs.plan.settings import Settings

__all__ = ["JudgeSettings", "read_judge"]

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
        raise ConfigError(f"{key} cannot be read: {str(error).splitlines()[0]}") from None


def _known(settings: Settings, key: str) -> str | None:
    """A text; None where it is taken from an environment variable that is not set."""
    try:
        found = OmegaConf.select(settings.config, key)
    except OmegaConfBaseException:  # the plan says so and goes on: the rest does not depend on it
        return None
    return None if found is None else str(found)
