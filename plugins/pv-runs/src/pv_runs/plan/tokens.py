"""What a step and the run count: prompts, responses, tokens."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.lengths import Lengths
from pv_runs.plan.setup import Setup

__all__ = ["Counts", "count", "lengths_of"]


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
