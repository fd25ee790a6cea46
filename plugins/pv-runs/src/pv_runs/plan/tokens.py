"""Response lengths, and the prompts, responses and tokens of a step and of the run.

Lengths are log-normal and cut at the longest response that is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from pv_rl.errors import ConfigError
from pv_runs.plan.setup import Setup

__all__ = ["Counts", "Lengths", "count", "lengths_of", "micro_batch_rows", "padding"]


NORMAL = NormalDist()
STEPS = 2000


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """`min(X, cut)` with `ln X` normal, so that the mean of what is cut is `mean`.

    Example: mean 778, sigma 1, cut 16,000: of 480 responses the longest is expected at 9,972 tokens.
    """

    mean: float
    """Tokens, after the cut; below `cut`."""
    sigma: float
    """Standard deviation of `ln X`."""
    cut: float
    """Tokens of the longest response."""

    def __post_init__(self) -> None:
        if self.mean >= self.cut:
            raise ConfigError(
                f"plan.response_tokens is {self.mean:g}, the mean of responses that data.max_response_length cuts at "
                f"{self.cut:g} tokens; it has to be below"
            )

    @property
    def mu(self) -> float:
        """Mean of `ln X`, found by bisection."""
        return _mu(self.mean, self.sigma, self.cut)

    @property
    def second_moment(self) -> float:
        """`E[min(X, cut)^2]`, in tokens squared."""
        return _moment(self.mu, self.sigma, self.cut, 2)

    def expected_longest(self, draws: float) -> float:
        """`E[max] = int_0^cut (1 - F(x)^draws) dx` of so many draws, in tokens.

        By the trapezoidal rule in `ln x`, from 8 sigma below the mean of the logarithm.
        """
        low, high = min(self.mu - 8 * self.sigma, math.log(self.cut) - 1), math.log(self.cut)
        width = (high - low) / STEPS
        points = [low + width * step for step in range(STEPS + 1)]
        values = [math.exp(x) * (1 - self._below(x) ** draws) for x in points]
        return math.exp(low) + width * (sum(values) - (values[0] + values[-1]) / 2)

    def _below(self, log_length: float) -> float:
        return NORMAL.cdf((log_length - self.mu) / self.sigma)


def _moment(mu: float, sigma: float, cut: float, power: int) -> float:
    """`E[min(X, c)^p] = e^{p mu + p^2 s^2 / 2} Phi(z - p s) + c^p (1 - Phi(z))`, with `z = (ln c - mu) / s`."""
    z = (math.log(cut) - mu) / sigma
    inside = math.exp(power * mu + (power * sigma) ** 2 / 2) * NORMAL.cdf(z - power * sigma)
    return inside + cut**power * NORMAL.cdf(-z)


@lru_cache(maxsize=64)
def _mu(mean: float, sigma: float, cut: float) -> float:
    low, high = math.log(mean) - sigma**2 / 2, math.log(cut) + 40 * sigma
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _moment(middle, sigma, cut, 1) < mean else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Of a step, and of the run where its steps are known."""

    prompts: int
    """A step, `data.train_batch_size`; the paper's samples."""
    rollouts: int
    """Responses a step; the paper's batch size."""
    updates: int
    """Of the optimizer, a step."""
    generated_tokens: float
    """A step."""
    trained_tokens: float
    """Prompts and responses, a step."""
    longest_response: float
    """Tokens of the longest response of a step, expected."""
    steps: int | None
    """None: neither `trainer.total_training_steps` nor `plan.dataset_size` is known."""
    samples: int | None
    """Prompts of the run, each time that one comes counted."""
    run_generated_tokens: float | None
    epochs: float | None
    """Times that the run goes over its data; None: `plan.dataset_size` is not known."""


def lengths_of(setup: Setup) -> Lengths:
    """How long the responses of the run are."""
    assumed = setup.assumed
    return Lengths(
        mean=assumed.response_tokens, sigma=assumed.length_sigma, cut=float(setup.batch.max_response)
    )


def padding(setup: Setup, tokens: int) -> float:
    """Tokens that a micro-batch of so many computes, over those: 1 with `use_remove_padding`.

    Without, each of its k rows is as long as its longest: `(p + E[max of k]) / (p + m)` for prompts of p and responses
    of mean m. verl counts real tokens when it cuts micro-batches, so k does not depend on it.
    """
    lengths, prompt = lengths_of(setup), setup.assumed.prompt_tokens
    if setup.training.remove_padding:
        return 1.0
    longest = lengths.expected_longest(micro_batch_rows(setup, tokens))
    return (prompt + longest) / (prompt + lengths.mean)


def micro_batch_rows(setup: Setup, tokens: int) -> float:
    """Rows of a micro-batch of so many tokens, 1 at least."""
    mean = setup.assumed.prompt_tokens + setup.assumed.response_tokens
    rows = tokens / (mean if setup.training.dynamic else setup.batch.longest)
    return max(1.0, min(rows, setup.batch.rollouts))


def count(setup: Setup) -> Counts:
    """Count.

    Example: 60 prompts of 8 responses of 778 tokens are 480 responses and 373,440 tokens a step; in 300 steps 18,000
    prompts and 112,032,000 tokens.
    """
    batch, assumed = setup.batch, setup.assumed
    generated = batch.rollouts * assumed.response_tokens
    steps = batch.steps
    if steps is None and assumed.dataset_size is not None:
        steps = batch.epochs * (assumed.dataset_size // batch.prompts)
    samples = None if steps is None else steps * batch.prompts
    return Counts(
        prompts=batch.prompts,
        rollouts=batch.rollouts,
        updates=-(-batch.prompts // batch.mini_batch) * batch.ppo_epochs,
        generated_tokens=generated,
        trained_tokens=generated + batch.rollouts * assumed.prompt_tokens,
        longest_response=lengths_of(setup).expected_longest(batch.rollouts),
        steps=steps,
        samples=samples,
        run_generated_tokens=None if steps is None else steps * generated,
        epochs=None if samples is None or assumed.dataset_size is None else samples / assumed.dataset_size,
    )
