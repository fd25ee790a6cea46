"""Rewards by name, in the form that verl calls, and added up by weights."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from omegaconf import OmegaConf

from pv_rl import plugins
from pv_rl.errors import ConfigError, DataError, VerlError
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards import ProofVerdict, Reward, RewardInput, RewardOutput, build_reward, named, read_label
from pv_rl.rewards.named import scorer


def score(text: str | None, label: object, name: str = "verdict", **options) -> dict[str, float]:
    return asyncio.run(scorer(name)("opc", text, label, extra_info={"index": 1}, **options))


RIGHT = {"reward_valid": 1, "reward_drop_group": 0, "reward_error": 0}


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        (
            "fine\n### True",
            "True",
            {"score": 1, "acc": 1, "verdict_true": 1, "verdict_missing": 0, "label_true": 1},
        ),
        (
            "fine\n### True",
            "False",
            {"score": 0, "acc": 0, "verdict_true": 1, "verdict_missing": 0, "label_true": 0},
        ),
        (
            "bad\n### False",
            False,
            {"score": 1, "acc": 1, "verdict_true": 0, "verdict_missing": 0, "label_true": 0},
        ),
        (
            "no idea",
            "False",
            {"score": 0, "acc": 0, "verdict_true": 0, "verdict_missing": 1, "label_true": 0},
        ),
        ("", "True", {"score": 0, "acc": 0, "verdict_true": 0, "verdict_missing": 1, "label_true": 1}),
    ],
)
def test_the_reward_is_one_where_the_verdict_is_the_label(text, label, expected):
    assert score(text, label) == expected | RIGHT


@pytest.mark.parametrize("name", ["verdict", "verdict_fluency"])
def test_keys_are_the_same_on_every_path(name):
    rows = [
        score(text, label, name)
        for text in ("### True", "a\n### False", "", None)
        for label in (True, "False")
    ]
    assert len({tuple(row) for row in rows}) == 1


def test_verl_sees_a_coroutine_function_under_the_rewards_name():
    assert inspect.iscoroutinefunction(named.verdict_fluency)
    assert named.verdict is scorer("verdict")


def test_a_reward_that_nobody_adds_is_refused_with_those_that_there_are():
    with pytest.raises(
        ConfigError, match=r"verdict, verdict_fluency, weighted.* Did you mean verdict_fluency\?"
    ):
        _ = named.verdict_fluenzy


@pytest.mark.parametrize(("name", "option"), [("verdict", "fluency"), ("verdict_fluency", "vet")])
def test_an_option_that_a_reward_does_not_know_is_an_error(name, option):
    with pytest.raises(ConfigError, match=option):
        score("### True", "True", name, **{option: 1})


def test_without_the_adapter_verl_is_refused_a_reward_that_may_abstain(monkeypatch):
    monkeypatch.setitem(named.sys.modules, "verl.experimental", named)
    monkeypatch.setattr(named, "_served", False)
    with pytest.raises(VerlError, match="VERL_USE_EXTERNAL_PLUGINS"):
        _ = named.verdict
    named.abstention_is_served()
    assert named.verdict


@pytest.mark.parametrize("label", ["maybe", "", None, 0.5, 2, "TrueFalse", [True]])
def test_a_row_whose_label_is_none_abstains_and_is_counted(label, caplog):
    named._say_once.cache_clear()
    keys = score("### True", True)
    assert score("### True", label) == dict.fromkeys(keys, 0) | {"reward_error": 1}
    assert "ground_truth" in caplog.text
    with pytest.raises(DataError, match="ground_truth"):
        RewardInput(response="", label=label)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"score": float("nan")}, "finite"),
        ({"score": float("inf")}, "finite"),
        ({"score": 1.0, "valid": False}, "where there is none it is 0"),
        ({"score": 1.0, "metrics": {"score": 0.5}}, "metrics named score"),
        (
            {"score": 1.0, "metrics": {"reward_valid": 1.0, "reward": 1.0}},
            "metrics named reward, reward_valid",
        ),
    ],
)
def test_an_output_that_could_be_misread_is_refused(output, text):
    with pytest.raises(DataError, match=text):
        RewardOutput(**output)


class Failing:
    async def score(self, sample: RewardInput) -> RewardOutput:
        raise ZeroDivisionError("by nobody")


def test_labels_are_read_in_the_spellings_of_data_files():
    assert [read_label(x) for x in (True, "true", " True ", 1, "1", 1.0)] == [True] * 6
    assert [read_label(x) for x in (False, "FALSE", 0, "0", 0.0)] == [False] * 5


def test_proof_verdict_is_a_reward():
    assert isinstance(ProofVerdict(), Reward)
    odd_label = RewardInput(response="### False", label="False")  # pyright: ignore[reportArgumentType]
    assert asyncio.run(ProofVerdict().score(odd_label)).score == 1.0
    output = asyncio.run(ProofVerdict().score(RewardInput(response="### True", label=True)))
    assert (output.score, output.valid) == (1.0, True)


class Constant:
    """A reward that gives what it is told to, once it knows the row."""

    def __init__(self, value: float = 0.5, valid: bool = True, drop_group: bool = False) -> None:
        self.output = RewardOutput(
            score=value if valid else 0.0,
            valid=valid,
            drop_group=drop_group,
            metrics={"acc": 7.0, "value": value},
        )
        self.seen: list[RewardInput] = []

    async def score(self, sample: RewardInput) -> RewardOutput:
        self.seen.append(sample)
        return self.output


@pytest.fixture
def constant():
    """`constant`, added by a plugin."""

    class Plugin:
        @staticmethod
        @hookimpl
        def pv_rl_rewards():
            return [
                RewardEntry(name="constant", build=Constant),
                RewardEntry(name="odd", build=dict),
                RewardEntry(name="failing", build=Failing),
            ]

    plugins.plugin_manager().register(Plugin, name="theirs")
    plugins._registry.cache_clear()
    yield
    plugins.plugin_manager().unregister(name="theirs")
    plugins._registry.cache_clear()
    scorer.cache_clear()
    named._built.cache_clear()


def test_a_plugins_reward_is_used_like_ours(constant):
    assert score("x", True, "constant", value=0.25)["score"] == 0.25
    row = score("x", True, "constant", valid=False, drop_group=True)
    assert (row["score"], row["reward_valid"], row["reward_drop_group"]) == (0, 0, 1)
    with pytest.raises(ConfigError, match="no method `score`"):
        build_reward("odd")


def test_a_reward_that_fails_takes_no_row_away(constant, caplog):
    named._say_once.cache_clear()
    rows = [score("x", True, "failing") for _ in range(2)]
    assert rows == [{"score": 0, "reward_valid": 0, "reward_drop_group": 0, "reward_error": 1}] * 2
    assert caplog.text.count("ZeroDivisionError: by nobody") == 1


def test_rewards_are_added_up_by_weights(constant):
    options = OmegaConf.create(
        {"rewards": {"verdict": 2.0, "constant": -1.0}, "options": {"constant": {"value": 0.25}}}
    )
    row = score("fine\n### True", True, "weighted", **options)
    assert row["score"] == 1.75
    assert (row["verdict_score"], row["constant_score"]) == (1.0, 0.25)
    assert (row["acc"], row["value"]) == (1.0, 0.25)  # acc is the first one's


def test_without_one_of_its_parts_there_is_no_sum(constant):
    parts = {"verdict": 1.0, "constant": 1.0}
    row = score("### True", True, "weighted", rewards=parts, options={"constant": {"valid": False}})
    assert (row["score"], row["reward_valid"], row["reward_drop_group"]) == (0, 0, 0)
    row = score("### True", True, "weighted", rewards=parts, options={"constant": {"drop_group": True}})
    assert (row["score"], row["reward_valid"], row["reward_drop_group"]) == (1.5, 1, 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rewards": {}}, "weight by name"),
        ({"rewards": ["verdict"]}, "weight by name"),
        ({"rewards": {"verdict": "1"}}, r"rewards\.verdict: '1'"),
        ({"rewards": {"verdict": float("nan")}}, "a weight is a number"),
        ({"rewards": {"verdit": 1.0}}, "Did you mean verdict"),
        ({"rewards": {"verdict": 1.0}, "options": {"constant": {}}}, "options for constant"),
        ({}, "rewards"),
    ],
)
def test_a_sum_that_makes_no_sense_is_refused(options, text):
    with pytest.raises(ConfigError, match=text):
        build_reward("weighted", options)


def test_a_reward_is_told_the_row_that_verl_scores(constant):
    token = named.row.set({"uid": "u", "session": 3, "step": 7})
    try:
        score("x", True, "constant")
    finally:
        named.row.reset(token)
    (sample,) = named._built("constant", "{}").seen  # pyright: ignore[reportAttributeAccessIssue]
    assert (sample.uid, sample.session, sample.step) == ("u", 3, 7)
    assert (sample.data_source, sample.extra) == ("opc", {"index": 1})
