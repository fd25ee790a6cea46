"""Binary verdict reward: 1 if the verdict equals the label, else 0."""

from __future__ import annotations

from pv_rl.rewards.base import LabelKind, RewardInput, RewardOutput
from pv_rl.verdict import parse_verdict

__all__ = ["ProofVerdict"]


class ProofVerdict:
    """1 if the final verdict equals the label, else 0; a trace without a verdict is wrong and counted."""

    label_kind: LabelKind = "verdict"
    metric_names = ("acc", "verdict_true", "verdict_missing", "label_true")

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics, each 0 or 1: `acc` right, `verdict_true` accepted, `verdict_missing` no verdict at all, and
        `label_true` of a right proof."""
        verdict = parse_verdict(sample.response)
        right = float(verdict is sample.label)
        return RewardOutput(
            score=right,
            metrics={
                "acc": right,
                "verdict_true": float(verdict is True),
                "verdict_missing": float(verdict is None),
                "label_true": float(sample.label),
            },
        )
