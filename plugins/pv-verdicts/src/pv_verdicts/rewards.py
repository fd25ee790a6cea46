"""Rewards of the verdict formats, one a format, and the meta-verified reward, entered through the hooks of pv-rl."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pv_rl.errors import ConfigError, DataError, PluginError, PvRlError
from pv_rl.hookspecs import Finding, RewardEntry, hookimpl
from pv_rl.installing import how_to_install
from pv_rl.plugins import left_out
from pv_verdicts.formats import FORMATS, Answer, Truth, VerdictFormat, build_format

if TYPE_CHECKING:  # verl's processes and the shell's completion only list the names
    from pv_rl.rewards.base import LabelKind, Reward, RewardInput, RewardOutput

__all__ = ["FormatReward", "pv_rl_doctor_checks", "pv_rl_rewards"]

OF_TRUTH: Mapping[Truth, tuple[str, ...]] = {
    "label": (),
    "grade": ("grade_error", "grade_exact"),
    "first_error": ("step_exact", "step_within_one"),
}
"""Metrics by what the format compares."""


class FormatReward:
    """The score of a verdict format.

    Args:
        form: the format.
        truth_key: the row's truth is this key of its `extra_info`, instead of its label.

    Raises:
        ConfigError: `truth_key` is not a text.
    """

    label_kind: LabelKind = "any"

    def __init__(self, form: VerdictFormat, truth_key: str | None = None) -> None:
        if truth_key is not None and (not isinstance(truth_key, str) or not truth_key):
            raise ConfigError(
                f"truth_key={truth_key!r:.80}; expected a key of the rows' extra_info, for example grade"
            )
        self.form, self.truth_key = form, truth_key
        self.metric_names = ("acc", "verdict_true", "verdict_missing", "label_true", *OF_TRUTH[form.truth])

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics, of `verdict`: `acc`, 1 where a right proof is accepted or a wrong one rejected, `verdict_true`,
        `verdict_missing`, `label_true`. For a grade also `grade_error`, |s' - s| (1 without a grade), and
        `grade_exact`; for a first wrong step `step_exact` and `step_within_one`.

        Raises:
            DataError: the row has no truth, or one that cannot be read.
            PluginError: the format of another package fails.
        """
        from pv_rl.rewards.base import RewardOutput

        if self.truth_key is not None and self.truth_key not in sample.extra:
            known = ", ".join(map(str, sample.extra)) or "nothing"
            raise DataError(
                f"a row has no extra_info.{self.truth_key}, which truth_key names; its extra_info has {known:.300}"
            )
        form = self.form
        try:
            truth = form.read_truth(sample.label if self.truth_key is None else sample.extra[self.truth_key])
            answer = form.read(sample.response)
            if not isinstance(answer, Answer):
                raise TypeError(f"read returned {answer!r:.80}; return an Answer")
            score = form.score(answer, truth)
        except PvRlError:
            raise
        except Exception as error:
            raise PluginError(
                f"the verdict format {form.name} of {FORMATS.owner(form.name)} failed: {error!r:.500}"
            ) from error
        right = bool(truth == 0 if form.truth == "first_error" else truth >= form.accept)
        return RewardOutput(
            score=score,
            metrics={
                "acc": float(answer.accepts is right),
                "verdict_true": float(answer.accepts is True),
                "verdict_missing": float(answer.accepts is None),
                "label_true": float(right),
                **dict(zip(OF_TRUTH[form.truth], _numbers(form.truth, answer, truth), strict=True)),
            },
        )


def _numbers(kind: Truth, answer: Answer, truth: float | int | bool) -> tuple[float, ...]:
    """The metrics of `OF_TRUTH`."""
    if kind == "grade":
        error = 1.0 if answer.grade is None else abs(answer.grade - float(truth))
        return error, float(error < 1e-9)
    if kind == "first_error":
        step = answer.first_error
        near = step is not None and bool(step) is bool(truth) and abs(step - truth) <= 1
        return float(step == truth), float(near)
    return ()


def _build(name: str, truth_key: str | None = None, judge: object = None, **options: Any) -> FormatReward:
    if judge is not None:
        raise ConfigError(
            f"the reward {name!r} asks no judge: take meta_verified or verdict_fluency with reward: {name}, or leave "
            "the judge out (judge=rules)"
        )
    return FormatReward(build_format(name, options), truth_key)


def _meta_verified(**options: Any) -> Reward:
    try:
        from pv_verdicts.meta_verifier import MetaVerifier
    except ImportError as error:
        if str(error.name).partition(".")[0] not in ("pv_judge", "pydantic"):
            raise
        raise ConfigError(
            "the reward meta_verified asks an LLM judge, and the package pv-judge is not installed. "
            + how_to_install("pv-judge")
        ) from error
    return MetaVerifier.reward(**options)


@hookimpl
def pv_rl_rewards() -> list[RewardEntry]:
    rewards = [
        RewardEntry(
            name=entry.name,
            build=partial(_build, entry.name),
            cheap=entry in FORMATS.own(),
            meaning=f"the score of the verdict format {entry.name}: {entry.meaning}",
        )
        for entry in FORMATS.entries().values()
        if entry.name != "verdict"
    ]
    meaning = "a reward, vetoed where an LLM finds that the errors which the trace names do not exist"
    meta = RewardEntry(name="meta_verified", build=_meta_verified, cheap=True, meaning=meaning, vetoes=True)
    return [*rewards, meta]


@hookimpl
def pv_rl_doctor_checks() -> Mapping[str, Callable[[], Finding]]:
    """A check of the formats of all installed packages, where one of them cannot be used."""
    wrong = left_out(FORMATS)
    return {"formats": lambda: Finding(state="wrong", text="; ".join(wrong))} if wrong else {}
