"""Rewards of the verdict formats, one a format, entered through the hook of pv-rl."""

from __future__ import annotations

from typing import Any

from pv_rl.errors import DataError
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards.base import LabelKind, RewardInput, RewardOutput
from pv_verdicts.formats import FORMATS, VerdictFormat, build_format

__all__ = ["FormatReward", "pv_rl_rewards"]


class FormatReward:
    """The score of a verdict format.

    Args:
        form: the format.
        truth_key: the row's truth is this key of its `extra_info`, instead of its label.
    """

    label_kind: LabelKind = "any"
    metric_names = ("acc", "verdict_true", "verdict_missing", "label_true")

    def __init__(self, form: VerdictFormat, truth_key: str | None = None) -> None:
        self.form, self.truth_key = form, truth_key

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics: `acc`, 1 where the accepted proof is right or the rejected one wrong, and those of `verdict`."""
        if self.truth_key is not None and self.truth_key not in sample.extra:
            raise DataError(f"a row has no extra_info.{self.truth_key}, which truth_key names")
        given = sample.label if self.truth_key is None else sample.extra[self.truth_key]
        truth = self.form.read_truth(given)
        answer = self.form.read(sample.response)
        right = truth == 0 if self.form.truth == "first_error" else truth == 1
        return RewardOutput(
            score=self.form.score(answer, truth),
            metrics={
                "acc": float(answer.accepts is right),
                "verdict_true": float(answer.accepts is True),
                "verdict_missing": float(answer.accepts is None),
                "label_true": float(right),
            },
        )


def _build(name: str, truth_key: str | None = None, **options: Any) -> FormatReward:
    return FormatReward(build_format(name, options), truth_key)


@hookimpl
def pv_rl_rewards() -> list[RewardEntry]:
    return [
        RewardEntry(
            name=entry.name,
            build=lambda name=entry.name, **options: _build(name, **options),
            meaning=f"the score of the verdict format {entry.name}: {entry.meaning}",
        )
        for entry in FORMATS.entries().values()
        if entry.name != "verdict"
    ]
