"""Verdict formats: what is read from the end of a trace, and what it is paid."""

from __future__ import annotations

import asyncio

import pytest

from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards.base import RewardInput
from pv_rl.rewards.build import build_reward
from pv_verdicts import Answer, build_format


@pytest.mark.parametrize(
    ("end", "points"),
    [
        ("### Grade: 5", 5),
        ("**### Grade: 5/7**<|im_end|>", 5),
        ("so it earns \\boxed{7}.", 7),
        ("### grade: 5 out of 7\n\n", 5),
        ("### Grade: 8", None),
        ("### Grade: 5.5", None),
        ("### Grade: 5\nor not", None),
        ("<think>### Grade: 5", None),
    ],
)
def test_a_grade_is_read_from_the_last_line(end: str, points: int | None) -> None:
    answer = build_format("grade").read(f"Step 2 has a gap.\n{end}")
    assert answer.grade == (None if points is None else points / 7)


def test_a_grade_is_paid_by_its_distance() -> None:
    form = build_format("grade", {"grades": [0, 0.5, 1]})
    assert form.score(form.read("### Grade: 1/2"), form.read_truth(1)) == 0.5
    assert form.score(Answer(), 1.0) == 0.0
    with pytest.raises(DataError, match="from 0 to 1"):
        form.read_truth(3)


def test_a_first_wrong_step_is_read_and_paid() -> None:
    form = build_format("first_error", {"near": 0.5})
    assert form.read("### First wrong step: none") == Answer(accepts=True, first_error=0)
    answer = form.read("It divides by 0.\n### First wrong step: Step 3")
    assert [form.score(answer, form.read_truth(step)) for step in (3, 4, 5, -1)] == [1.0, 0.5, 0.0, 0.0]


def test_a_pattern_reads_the_step_before_a_verdict() -> None:
    form = build_format("first_error", {"pattern": r"S(\d+) wrong"})
    assert form.read("so S3 wrong ### False").first_error == 3
    assert form.read("so S3 wrong, no: all fine ### True").first_error == 0
    assert form.read("looks wrong ### False") == Answer(accepts=False)
    assert form.read("S3 wrong") == Answer()


def test_a_pattern_reads_the_points_before_a_verdict() -> None:
    form = build_format("grade", {"pattern": r"(\d+) of 7 points"})
    assert form.read("2 of 7 points, no, 3 of 7 points ### False") == Answer(accepts=False, grade=3 / 7)
    assert form.read("3 of 7 points ### True") == Answer(accepts=True, grade=1.0)
    assert form.read("9 of 7 points ### False") == form.read("### False") == Answer(accepts=False)
    assert form.read("3 of 7 points") == Answer()
    with pytest.raises(ConfigError, match="2 groups"):
        build_format("grade", {"pattern": "(a)(b)"})


def test_a_format_is_a_reward_with_its_truth_from_the_row() -> None:
    reward = build_reward("first_error", {"truth_key": "error_step"})
    sample = RewardInput(
        response="### First wrong step: 2", label="False", label_kind="any", extra={"error_step": 2}
    )
    output = asyncio.run(reward.score(sample))
    assert (output.score, output.metrics["acc"], output.metrics["label_true"]) == (1.0, 1.0, 0.0)
    with pytest.raises(DataError, match=r"extra_info\.error_step"):
        asyncio.run(reward.score(RewardInput(response="", label=None, label_kind="any")))


def test_an_unknown_format_or_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="grade"):
        build_format("grades")
    with pytest.raises(ConfigError, match="cannot be built"):
        build_format("grade", {"maximum": 7})
