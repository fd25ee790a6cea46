"""Rewards by name, in the form that verl calls, and added up by weights."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from added_rewards import adding
from omegaconf import OmegaConf

from pv_rl.errors import ConfigError, DataError, PluginError, PvRlError, VerlError
from pv_rl.hookspecs import RewardEntry
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
        ConfigError,
        match=r"no reward 'verdict_fluenzy'\. Did you mean verdict_fluency\? Available: verdict, verdict_",
    ):
        _ = named.verdict_fluenzy


@pytest.mark.parametrize(("name", "option"), [("verdict", "fluency"), ("verdict_fluency", "vet")])
def test_an_option_that_a_reward_does_not_know_is_an_error(name, option, monkeypatch):
    monkeypatch.setattr(named, "_served", False)
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
        ({"score": 1.0, "valid": False}, "valid=False has the score 1.0; expected 0"),
        ({"score": 1.0, "metrics": {"score": 0.5}}, "reserved names: score"),
        (
            {"score": 1.0, "metrics": {"reward_valid": 1.0, "reward": 1.0}},
            "reserved names: reward, reward_valid",
        ),
    ],
)
def test_an_output_that_could_be_misread_is_refused(output, text):
    with pytest.raises(DataError, match=text):
        RewardOutput(**output)


def refusing() -> Reward:
    raise ConfigError("odd.words: -1; it is a number above 0")


class Failing:
    async def score(self, sample: RewardInput) -> RewardOutput:
        raise ZeroDivisionError("by nobody")


def test_labels_are_read_in_the_spellings_of_data_files():
    assert [read_label(x) for x in (True, "true", " True ", 1, "1", 1.0)] == [True] * 6
    assert [read_label(x) for x in (False, "FALSE", 0, "0", 0.0)] == [False] * 5


def test_a_long_label_is_not_repeated_in_full():
    with pytest.raises(DataError) as caught:
        read_label("1" * 100_000)
    assert len(str(caught.value)) < 300


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
    with adding(
        RewardEntry(name="constant", build=Constant),
        RewardEntry(name="failing", build=Failing),
    ):
        yield


def test_a_plugins_reward_is_used_like_ours(constant):
    assert score("x", True, "constant", value=0.25)["score"] == 0.25
    row = score("x", True, "constant", valid=False, drop_group=True)
    assert (row["score"], row["reward_valid"], row["reward_drop_group"]) == (0, 0, 1)


def test_a_reward_that_fails_takes_no_row_away(constant, caplog):
    rows = [score("x", True, "failing") for _ in range(2)]
    assert rows == [{"score": 0, "reward_valid": 0, "reward_drop_group": 0, "reward_error": 1}] * 2
    assert caplog.text.count("ZeroDivisionError: by nobody") == 1


class Numpy(RewardOutput):
    """An output that does not look at itself."""

    def __post_init__(self) -> None: ...


class Panic(BaseException):
    """As the panic of a library in Rust is: no Exception."""


def returning(given: Any) -> type:
    """A class whose `score` returns this, or raises it."""

    class Returning:
        async def score(self, sample: RewardInput) -> Any:
            if isinstance(given, BaseException):
                raise given
            return given() if callable(given) else given

    return Returning


class Synchronous:
    def score(self, sample: RewardInput) -> RewardOutput:
        return RewardOutput(score=1.0)


class Generator:
    async def score(self, sample: RewardInput):
        yield RewardOutput(score=1.0)


class Cancelled:
    async def score(self, sample: RewardInput) -> RewardOutput:
        request = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        request.cancel()  # by its own hand, not by whoever waits for the row
        await request
        raise AssertionError


class Several:
    async def score(self, sample: RewardInput) -> RewardOutput:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Failing().score(sample))
        raise AssertionError


class Exhausted:
    def score(self, sample: RewardInput) -> Any:
        return next(iter(()))


def with_metrics(**metrics: Any) -> Callable[[], RewardOutput]:
    return lambda: RewardOutput(score=1.0, metrics=metrics)


@pytest.mark.parametrize(
    ("name", "options"),
    [("odd", {}), ("weighted", {"rewards": {"odd": 1.0}}), ("verdict_fluency", {"reward": "odd"})],
)
@pytest.mark.parametrize(
    ("build", "text"),
    [
        (returning(0.5), "`score` returned 0.5 (float); return RewardOutput(score=...)"),
        (returning(None), "`score` returned None (NoneType); return RewardOutput"),
        (returning("1"), "`score` returned '1' (str); return RewardOutput"),
        (returning({"score": 1.0}), "`score` returned {'score': 1.0} (dict); return RewardOutput"),
        (returning((1.0, True)), "(tuple); return RewardOutput"),
        (Synchronous, "at once; declare `async def score`"),
        (Generator, "(async_generator) at once; declare `async def score`"),
        (Failing, "raised ZeroDivisionError: by nobody (test_rewards.py, line "),
        (returning(DataError("odd")), "the reward 'odd' of theirs: odd"),
        (Several, "raised ZeroDivisionError: by nobody (test_rewards.py, line "),
        (Exhausted, "raised StopIteration (test_rewards.py, line "),
        (returning(SystemExit(3)), "raised SystemExit: 3"),
        (returning(Panic("at the disco")), "Panic: at the disco"),
        (Cancelled, "raised asyncio.exceptions.CancelledError"),
        (returning(lambda: RewardOutput(score="1")), "a reward's score is '1'; expected a finite number"),  # pyright: ignore[reportArgumentType]
        (returning(lambda: Numpy(score=float("nan"))), "a reward's score is nan; expected a finite number"),
        (returning(lambda: RewardOutput(score=1.0, valid="no")), "valid is 'no'; expected True or False"),  # pyright: ignore[reportArgumentType]
        (returning(with_metrics(answer="72")), "metric 'answer' is '72'; expected a finite number"),
        (returning(with_metrics(answer=None)), "metric 'answer' is None"),
        *(
            (returning(with_metrics(**{odd: 1.0})), f"metric {odd!r} is 1.0")
            for odd in ("", "a\nb", "\ud83d")
        ),
        (returning(with_metrics(words=float("nan"))), "metric 'words' is nan"),
        (returning(with_metrics(words=np.ones(2))), "metric 'words' is array"),
        (returning(lambda: RewardOutput(score=1.0, metrics={1: 1.0})), "metric 1 is 1.0"),  # pyright: ignore[reportArgumentType]
        (
            returning(lambda: RewardOutput(score=1.0, metrics=[1.0])),  # pyright: ignore[reportArgumentType]
            "metrics are [1.0]; expected a dict of numbers",
        ),
        (returning(lambda: Numpy(score=1.0, metrics={"reward_error": 1.0})), "reserved names: reward_error"),
    ],
)
def test_whatever_a_plugins_reward_does_its_row_abstains_and_the_log_names_the_package(
    build, text, name, options, caplog
):
    with adding(RewardEntry(name="odd", build=build)):
        rows = [score("### True", True, name, **options) for _ in range(2)]
    assert rows == [{"score": 0, "reward_valid": 0, "reward_drop_group": 0, "reward_error": 1}] * 2
    (record,) = [record for record in caplog.records if record.name == "pv_rl"]
    assert text in record.getMessage()
    assert record.getMessage().count("the reward 'odd' of theirs") == 1


@pytest.mark.parametrize("number", [1, True, np.float32(1.0), torch.tensor(1.0), Fraction(1)])
def test_a_number_of_any_library_is_a_score_and_a_metric(number):
    output = RewardOutput(score=number, metrics={"n": number})
    assert (output.score, output.metrics) == (1.0, {"n": 1.0})
    assert type(output.score) is type(output.metrics["n"]) is float


class Fickle:
    """Other metrics for each response."""

    async def score(self, sample: RewardInput) -> RewardOutput:
        return RewardOutput(score=1.0, metrics=dict.fromkeys(sample.response.split(), 1.0))


def test_metrics_that_change_from_row_to_row_are_an_error_that_names_them(caplog):
    with adding(RewardEntry(name="fickle", build=Fickle)):
        assert score("b a", True, "fickle") == {"score": 1, "b": 1, "a": 1} | RIGHT
        assert score("a b", True, "fickle") == {"score": 1, "b": 1, "a": 1} | RIGHT
        for text in ("a c", "", "a b c"):
            row = score(text, True, "fickle")
            assert row == dict.fromkeys(("score", "b", "a", *RIGHT), 0) | {"reward_error": 1}
    assert "the reward 'fickle' of theirs: a row has the metrics a, c; expected b, a, as in" in caplog.text
    assert "(difference: b, c)" in caplog.text


def test_metrics_are_compared_with_those_that_the_reward_declares(caplog):
    class Declared(Fickle):
        metric_names = ("a", "b")

    class Text(Fickle):
        metric_names = "acc"

    with adding(RewardEntry(name="declared", build=Declared)):
        assert score("c", True, "declared")["reward_error"] == 1
    assert "a row has the metrics c; expected a, b, as in the reward's metric_names" in caplog.text
    with (
        adding(RewardEntry(name="text", build=Text)),
        pytest.raises(PluginError, match="metric_names='acc'; ex"),
    ):
        build_reward("text", {})


class Picky:
    """Abstains where there is no response, and says nothing then."""

    async def score(self, sample: RewardInput) -> RewardOutput:
        if not sample.response:
            return RewardOutput(score=0.0, valid=False)
        return RewardOutput(score=1.0, metrics={"words": 2.0})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("picky", {}),
        ("weighted", {"rewards": {"verdict": 1.0, "picky": 1.0}}),
        ("verdict_fluency", {"reward": "picky"}),
    ],
)
def test_a_row_that_abstains_may_leave_the_metrics_out(name, options):
    with adding(RewardEntry(name="picky", build=Picky)):
        rows = [score(text, True, name, **options) for text in ("", "a b", "")]
    assert [(row.get("words"), row["reward_valid"], row["reward_error"]) for row in rows] == [
        (None, 0, 0),
        (2, 1, 0),
        (0, 0, 0),
    ]
    assert list(rows[1]) == list(rows[2])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("verdict", {}),
        ("verdict_fluency", {"rules": {"sentence_loop": False}}),
        ("weighted", {"rewards": {"verdict_fluency": 1.0, "verdict": 1.0, "named": 1.0}}),
        ("named", {}),
    ],
)
def test_a_row_that_fails_before_any_was_scored_has_all_names_in_the_order_of_the_others(name, options):
    class Named:
        metric_names = ("words", "lines")

        async def score(self, sample: RewardInput) -> RewardOutput:
            return RewardOutput(score=1.0, metrics={"words": 2.0, "lines": 1.0})

    with adding(RewardEntry(name="named", build=Named)):
        rows = [score("### True", label, name, **options) for label in ("maybe", "True")]
    assert [row["reward_error"] for row in rows] == [1, 0]
    assert list(rows[0]) == list(rows[1])


@pytest.mark.parametrize("error", [OSError("no model on this node"), ConfigError("no model on this node")])
def test_where_a_reward_cannot_be_built_in_a_worker_of_verl_alone_its_rows_abstain(
    error, monkeypatch, caplog
):
    """verl throws away a prompt whose reward function raises, and says nothing in its metrics."""
    monkeypatch.setattr(named, "_served", True)

    def build() -> Reward:
        raise error

    with adding(RewardEntry(name="odd", build=build)):
        row = score("x", True, "odd")
    assert row == {"score": 0, "reward_valid": 0, "reward_drop_group": 0, "reward_error": 1}
    assert "no model on this node" in caplog.text


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (dict, "returned {} (dict), with no method `score`"),
        (lambda: None, "returned None (NoneType), with no method `score`"),
        (lambda: Failing, "(type), with no method `score`"),
        (lambda: 1 / 0, "raised ZeroDivisionError: division by zero (test_rewards.py, line"),
        (lambda: sys.exit(3), "raised SystemExit: 3"),
        (lambda: next(iter(())), "raised StopIteration (test_rewards.py, line"),
        (lambda: Path("/no/such/file").read_text(), "raised FileNotFoundError"),
        (
            lambda words: None,
            "the options of the reward 'odd' of theirs do not fit it: the option words is missing. Options: words",
        ),
        (
            type("Odd", (Failing,), {"label_kind": "truth"}),
            "label_kind 'truth'; expected one of verdict, number",
        ),
        (type("Odd", (Failing,), {"label_kind": ["text"]}), "the label_kind ['text']; expected one of"),
        (refusing, "the reward 'odd' of theirs: odd.words: -1"),
    ],
)
def test_a_reward_that_cannot_be_built_is_one_error_that_names_the_package(build, text):
    with adding(RewardEntry(name="odd", build=build)):
        for name, options in (
            ("odd", {}),
            ("weighted", {"rewards": {"odd": 1.0}}),
            ("verdict_fluency", {"reward": "odd"}),
        ):
            with pytest.raises(PvRlError) as caught:
                build_reward(name, options)
            assert text in str(caught.value)
            assert str(caught.value).count("the reward 'odd' of theirs") == 1


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("verdict", {"jugde": 1}, "there is no option 'jugde'. Did you mean judge? Options: judge"),
        ("verdict", {3: 1}, "there is no option 3. Options: judge"),
        ("weighted", {}, "the option rewards is missing. Options: rewards, options"),
        ("weighted", {"rewards": {"verdict": 1.0}, "options": 3}, "options: 3; give options by the name of"),
        ("odd", {"words": 1}, "do not fit it: not a text. Options: none"),
    ],
)
def test_options_that_do_not_fit_are_named_with_those_that_exist(name, options, says):
    """The last reward takes any option, and raises for this value."""

    def build(**settings: object) -> Reward:
        raise TypeError("not a text")

    with adding(RewardEntry(name="odd", build=build)), pytest.raises(ConfigError) as caught:
        build_reward(name, options)
    assert says in str(caught.value)
    assert "argument" not in str(caught.value)


def test_a_builtin_that_does_not_take_the_options_is_an_error_of_the_config():
    odd = RewardEntry(name="odd", build=int)  # inspect.signature raises for it
    with adding(odd), pytest.raises(ConfigError, match=r"do not fit it: .* is an invalid keyword argument"):
        build_reward("odd", {"words": 1})


def test_what_prepare_raises_names_the_package_too():
    class Unprepared(Failing):
        def prepare(self, router_address: str | None = None) -> None:
            raise OSError("no model there")

    with adding(RewardEntry(name="odd", build=Unprepared)):
        reward = build_reward("verdict_fluency", {"reward": "odd"})
        with pytest.raises(PluginError, match=r"the reward 'odd' of theirs raised OSError: no model there"):
            reward.prepare()


@pytest.mark.parametrize(("name", "options"), [("odd", {}), ("weighted", {"rewards": {"odd": 1.0}})])
def test_the_cancellation_of_a_row_goes_through(name, options):
    class Hanging:
        async def score(self, sample: RewardInput) -> RewardOutput:
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> None:
        row = asyncio.ensure_future(scorer(name)("", "x", True, **options))
        await asyncio.sleep(0.01)
        row.cancel()
        await row

    with adding(RewardEntry(name="odd", build=Hanging)), pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


class Echo:
    """Returns nothing but what it was given for a label."""

    def __init__(self, kind: str | None = None) -> None:
        if kind is not None:
            self.label_kind = kind
        self.seen: list[object] = []

    async def score(self, sample: RewardInput) -> RewardOutput:
        self.seen.append(sample.label)
        return RewardOutput(score=1.0)


@pytest.mark.parametrize("way", ["alone", "weighted", "vetoed", "both"])
@pytest.mark.parametrize(
    ("kind", "label", "seen"),
    [
        (None, "1", True),  # a reward from before labels had kinds
        ("verdict", 0, False),
        ("text", "1", "1"),
        ("text", "3/4", "3/4"),
        ("text", 72, "72"),
        ("text", "True", "True"),
        ("text", "nan", "nan"),
        ("number", "1", 1.0),
        ("number", 0, 0.0),
        ("number", np.float32(0.25), 0.25),
        ("any", 1, 1),
        ("any", None, None),
        ("any", {"tests": [1]}, {"tests": [1]}),
    ],
)
def test_a_reward_is_given_the_label_that_it_asks_for(kind, label, seen, way):
    options = {"kind": kind}
    name, options = {
        "alone": ("echo", options),
        "weighted": ("weighted", {"rewards": {"echo": 1.0}, "options": {"echo": options}}),
        "vetoed": ("verdict_fluency", {"reward": "echo", "reward_options": options}),
        "both": ("weighted", {"rewards": {"echo": 1.0, "other": 1.0}, "options": {"echo": options}}),
    }[way]
    built = []

    def build(**options):
        built.append(Echo(**options))
        return built[-1]

    with adding(RewardEntry(name="echo", build=build), RewardEntry(name="other", build=lambda: Echo("any"))):
        row = score("x", label, name, **options)
    assert row["reward_error"] == 0
    assert built[0].seen == [seen]
    assert type(built[0].seen[0]) is type(seen)


@pytest.mark.parametrize(
    ("kind", "label", "text"),
    [
        (None, "72", "the label is '72'; a label says whether the proof is correct"),
        ("number", True, "the label is True; this reward expects a number in [0, 1]"),
        ("number", 1.5, "a number in [0, 1]"),
        ("number", "nan", "a number in [0, 1]"),
        ("number", "high", "a number in [0, 1]"),
        ("text", None, "a text that is not blank"),
        ("text", " ", "a text that is not blank"),
        ("text", float("nan"), "a text that is not blank"),
        ("text", ["72"], "a text that is not blank"),
    ],
)
def test_a_label_of_another_kind_is_refused_by_the_reward_that_asks(kind, label, text, caplog):
    with adding(RewardEntry(name="echo", build=Echo)):
        row = score("x", label, "echo", kind=kind)
    assert (row["reward_valid"], row["reward_error"]) == (0, 1)
    assert f"the reward 'echo' of theirs: the label is {label!r}" in caplog.text
    assert text in caplog.text
    assert "reward_model.ground_truth" in caplog.text


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
        ({"rewards": {"verdict": 10**400}}, "a weight is a number"),
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
    (sample,) = named._built("constant", "{}").reward.seen  # pyright: ignore[reportAttributeAccessIssue]
    assert (sample.uid, sample.session, sample.step) == ("u", 3, 7)
    assert (sample.data_source, sample.extra) == ("opc", {"index": 1})


@pytest.mark.parametrize("options", [3, "words", ["words"]])
def test_options_that_have_no_names_are_refused(options):
    with pytest.raises(
        ConfigError, match=r"the options of the reward 'verdict' are .*; expected options by name"
    ):
        build_reward("verdict_fluency", {"reward_options": options})
