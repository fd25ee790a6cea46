"""The binary verdict reward: right or wrong, and nothing for the way there.

In a verl config:

    reward.custom_reward_function.path=pkg://pv_rl.rewards.proof_verdict
    reward.custom_reward_function.name=compute_score
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pv_rl.rewards.base import RewardInput, RewardOutput
from pv_rl.verdict import parse_verdict

__all__ = ["ProofVerdict", "compute_score"]


class ProofVerdict:
    """1 if the final verdict equals the label, else 0; a trace without a verdict is wrong and counted."""

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics, each 0 or 1: `acc` right, `verdict_true` accepted, `verdict_missing` no verdict at all."""
        verdict = parse_verdict(sample.response)
        right = float(verdict is sample.label)
        return RewardOutput(
            score=right,
            metrics={
                "acc": right,
                "verdict_true": float(verdict is True),
                "verdict_missing": float(verdict is None),
            },
        )


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    reward_router_address: str | None = None,
    reward_model_tokenizer: Any = None,
) -> dict[str, float]:
    """`ProofVerdict` in the form that verl calls (verl/experimental/reward_loop/reward_manager/naive.py).

    Args:
        data_source: the row's data set.
        solution_str: the response, special tokens removed.
        ground_truth: the label, see `read_label`.
        extra_info: the row's extra fields; not used.
        reward_router_address: given by verl where a reward model runs in the cluster; not used.
        reward_model_tokenizer: likewise. Any other name in `reward_kwargs` is an error, not ignored.

    Returns:
        `score` and the metrics, the same keys for every row. verl logs those of the validation set, a group
        for each data source, and takes `acc` for its headline.

    Raises:
        DataError: the label is not one.
    """
    sample = RewardInput(
        response=solution_str or "",
        label=ground_truth,  # pyright: ignore[reportArgumentType] - RewardInput reads it
        data_source=data_source,
        extra=extra_info or {},
    )
    output = await ProofVerdict().score(sample)
    return {"score": output.score, **output.metrics}
