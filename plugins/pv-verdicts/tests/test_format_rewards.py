"""Verdict formats as rewards by name: their truth, their metrics, and formats that another package adds."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from pv_rl import plugins
from pv_rl.cli import app
from pv_rl.errors import ConfigError, DataError, PluginError
from pv_rl.plugins import REWARDS
from pv_rl.rewards import RewardInput, RewardOutput, build_reward, named
from pv_verdicts import Answer, hookspecs
from pv_verdicts.formats import FORMATS
from pv_verdicts.hookspecs import FormatEntry
from pv_verdicts.rewards import pv_rl_doctor_checks

METRICS = ("acc", "verdict_true", "verdict_missing", "label_true")


def score(
    name: str, response: str, label: object, extra: dict[str, object] | None = None, **options
) -> RewardOutput:
    sample = RewardInput(response=response, label=label, label_kind="any", extra=extra or {})
    return asyncio.run(build_reward(name, options).score(sample))


def numbers(output: RewardOutput, *names: str) -> list[float]:
    return [output.metrics[name] for name in (*METRICS, *names)]


@pytest.mark.parametrize(
    ("end", "truth", "paid", "metrics"),
    [
        ("### Grade: 7", 7, 1.0, [1, 1, 0, 1, 0, 1]),
        ("### Grade: 5", 5, 1.0, [1, 0, 0, 0, 0, 1]),
        ("### Grade: 5", "7", 1 - 2 / 7, [0, 0, 0, 1, 2 / 7, 0]),
        ("no grade", 0, 0.0, [0, 0, 1, 0, 1, 0]),
    ],
)
def test_a_grade_has_the_metrics_of_a_verdict_and_its_error(end, truth, paid, metrics) -> None:
    output = score("grade", f"Step 2 has a gap.\n{end}", truth)
    assert output.score == pytest.approx(paid)
    assert numbers(output, "grade_error", "grade_exact") == pytest.approx(metrics)


def test_the_pass_mark_holds_for_truths_too() -> None:
    output = score("grade", "### Grade: 6", 6, accept=6)
    assert numbers(output) == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("step", "truth", "metrics"),
    [
        ("2", 2, [1, 0, 0, 0, 1, 1]),
        ("3", 2, [1, 0, 0, 0, 0, 1]),
        ("9", 2, [1, 0, 0, 0, 0, 0]),
        ("none", 1, [0, 1, 0, 0, 0, 0]),
        ("none", -1, [1, 1, 0, 1, 1, 1]),
        ("1 or 2", 2, [0, 0, 1, 0, 0, 0]),
    ],
)
def test_a_first_wrong_step_has_the_metrics_of_a_verdict_and_its_own(step, truth, metrics) -> None:
    extra = {"error_step": truth}
    output = score("first_error", f"### First wrong step: {step}", "False", extra, truth_key="error_step")
    assert numbers(output, "step_exact", "step_within_one") == metrics


def test_a_row_without_its_truth_is_an_error_that_lists_what_it_has() -> None:
    with pytest.raises(DataError, match=r"extra_info\.grade, .* has index, split"):
        score("grade", "### Grade: 5", "True", {"index": 1, "split": "x"}, truth_key="grade")
    with pytest.raises(ConfigError, match="truth_key=5"):
        score("grade", "### Grade: 5", 5, truth_key=5)
    with pytest.raises(ConfigError, match="asks no judge: take meta_verified"):
        score("grade", "### Grade: 5", 5, judge={"endpoints": []})


def test_a_format_goes_into_a_weighted_sum_and_into_the_veto() -> None:
    trace, extra = "Step 2 divides by 0.\n### Grade: 5\n### Grade: 5", {"grade": 7}
    options = {"rewards": {"grade": 0.7, "first_error": 1}, "options": {"grade": {"truth_key": "grade"}}}
    assert score("weighted", trace, -1, extra, **options).score == pytest.approx(0.5)
    options = {"reward": "grade", "reward_options": {"truth_key": "grade"}}
    assert score("verdict_fluency", trace, None, extra, **options).score == pytest.approx(5 / 7)
    loop = "Step 1 holds because of the bound. " * 60 + "\n### Grade: 7"
    assert score("verdict_fluency", loop, None, extra, **options).score == 0.0


class Confidence:
    """A grade of a third party: `confident` or `unsure` as the last word."""

    name, truth, grades, accept, prompt = "confidence", "grade", (0.0, 1.0), 0.5, None
    answer: object = None

    def read(self, trace: str) -> Answer:
        if self.answer is not None:
            return self.answer  # type: ignore[return-value]
        grade = {"confident": 1.0, "unsure": 0.0}.get(trace.split()[-1])
        return Answer() if grade is None else Answer(accepts=grade >= 0.5, grade=grade)

    def read_truth(self, value: object) -> float:
        return float(str(value))

    def score(self, answer: Answer, truth: float) -> float:
        return 1.0 - abs((answer.grade or 0.0) - truth)


@contextmanager
def installed(*entries: object) -> Iterator[None]:
    """The formats of a package `theirs`."""
    manager = plugins._loaded("pv_verdicts")[0]

    def forget() -> None:
        plugins.forget_plugins()
        for cached in (named.scorer, named._built, named._say_once):
            cached.cache_clear()

    theirs = SimpleNamespace(pv_verdict_formats=hookspecs.hookimpl(lambda: list(entries)))
    manager.register(theirs, name="theirs")
    forget()
    try:
        yield
    finally:
        manager.unregister(name="theirs")
        forget()


def test_a_format_of_another_package_is_a_reward_of_verl_and_trl() -> None:
    with installed(FormatEntry(name="confidence", build=Confidence, meaning="one word")):
        row = asyncio.run(named.confidence("", "I am confident", "0.25", {"truth": 1}))
        assert (row["score"], row["acc"], row["grade_error"], row["reward_valid"]) == (0.25, 0, 0.75, 1)
        by_key = asyncio.run(named.confidence("", "I am confident", "0.25", {"t": 1}, truth_key="t"))
        assert (by_key["score"], by_key["acc"]) == (1, 1)
    with pytest.raises(ConfigError, match="no reward 'confidence'"):
        named.confidence  # noqa: B018


def test_the_driver_builds_formats_of_ours_and_of_no_other_package() -> None:
    with installed(FormatEntry(name="confidence", build=Confidence)):
        assert [REWARDS.find(name).cheap for name in ("grade", "confidence")] == [True, False]


def test_a_format_that_fails_is_named_with_its_package() -> None:
    class Broken(Confidence):
        answer = 0.5

    class Lacking:
        truth = "marks"

    with installed(FormatEntry(name="confidence", build=Broken), FormatEntry(name="lacking", build=Lacking)):
        with pytest.raises(PluginError, match=r"confidence of theirs failed: .*return an Answer"):
            score("confidence", "I am confident", 1)
        with pytest.raises(PluginError, match="lacking of theirs lacks name, grades"):
            score("lacking", "", 1)


@pytest.mark.parametrize("name", ["weighted", "verdict_fluency", "meta_verified", "grade"])
def test_a_format_takes_no_name_of_ours(name: str) -> None:
    with installed(
        FormatEntry(name=name, build=Confidence), FormatEntry(name="confidence", build=Confidence)
    ):
        assert score("weighted", "I am confident", 1, rewards={"confidence": 1}).score == 1
        assert "theirs" in pv_rl_doctor_checks()["formats"]().text
    assert pv_rl_doctor_checks() == {}


@pytest.mark.parametrize(
    ("name", "build"), [("é", Confidence), ("_x", Confidence), ("a b", Confidence), ("x", 5)]
)
def test_an_entry_that_could_not_be_a_reward_is_refused(name: str, build: object) -> None:
    with pytest.raises(PluginError):
        FormatEntry(name=name, build=build)  # type: ignore[arg-type]
    assert "grade" in FORMATS.entries()


def test_rollouts_are_scored_with_the_truth_in_their_extra_info(tmp_path) -> None:
    rows = [
        {
            "output": f"A gap.\n### Grade: {grade}",
            "gts": "True",
            "extra_info": {"grade": 7},
            "input": "Grade it.",
        }
        for grade in (7, 0)
    ]
    file = tmp_path / "rollouts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["score", "--reward=grade", "--set", "truth_key=grade", f"--rollouts={file}"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert re.search(r"mean score\W+0\.5000", done.output)
