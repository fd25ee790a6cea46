"""The verdict reward, and its form for verl."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from pv_rl.errors import DataError
from pv_rl.rewards import ProofVerdict, Reward, RewardInput, read_label
from pv_rl.rewards.proof_verdict import compute_score


def score(text: str, label: object) -> dict[str, float]:
    return asyncio.run(compute_score("opc", text, label, extra_info={"index": 1}))


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("fine\n### True", "True", {"score": 1, "acc": 1, "verdict_true": 1, "verdict_missing": 0}),
        ("fine\n### True", "False", {"score": 0, "acc": 0, "verdict_true": 1, "verdict_missing": 0}),
        ("bad\n### False", False, {"score": 1, "acc": 1, "verdict_true": 0, "verdict_missing": 0}),
        ("no idea", "False", {"score": 0, "acc": 0, "verdict_true": 0, "verdict_missing": 1}),
        ("", "True", {"score": 0, "acc": 0, "verdict_true": 0, "verdict_missing": 1}),
    ],
)
def test_the_reward_is_one_where_the_verdict_is_the_label(text, label, expected):
    assert score(text, label) == expected


def test_keys_are_the_same_on_every_path():
    rows = [score(text, label) for text in ("### True", "### False", "", None) for label in (True, "False")]
    assert len({tuple(row) for row in rows}) == 1


def test_verl_sees_a_coroutine_function():
    assert inspect.iscoroutinefunction(compute_score)


def test_an_unknown_reward_kwarg_is_an_error():
    with pytest.raises(TypeError, match="fluency"):
        asyncio.run(compute_score("opc", "### True", "True", fluency=1))  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("label", ["maybe", "", None, 0.5, 2, "TrueFalse", [True]])
def test_a_label_that_is_none_is_refused(label):
    with pytest.raises(DataError, match=r"ground_truth"):
        score("### True", label)


def test_labels_are_read_in_the_spellings_of_data_files():
    assert [read_label(x) for x in (True, "true", " True ", 1, "1", 1.0)] == [True] * 6
    assert [read_label(x) for x in (False, "FALSE", 0, "0", 0.0)] == [False] * 5


def test_proof_verdict_is_a_reward():
    assert isinstance(ProofVerdict(), Reward)
    odd_label = RewardInput(response="### False", label="False")  # pyright: ignore[reportArgumentType]
    assert asyncio.run(ProofVerdict().score(odd_label)).score == 1.0
    output = asyncio.run(ProofVerdict().score(RewardInput(response="### True", label=True)))
    assert (output.score, output.valid) == (1.0, True)
