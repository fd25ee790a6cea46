"""The fluency veto with pv-rl alone: rules, their options, and the error for a judge that no package adds."""

from __future__ import annotations

import asyncio

import pytest
from omegaconf import OmegaConf

from pv_doctor.reward import check_reward
from pv_rl import plugins
from pv_rl.errors import ConfigError
from pv_rl.hookspecs import JudgeEntry, Parameter, hookimpl
from pv_rl.rewards import Judgment, RewardInput, RewardOutput, build_reward
from pv_rl.rewards.degeneration import DegenerationRule
from pv_rl.rewards.judge import VetoRecord

GOOD = "Step 1 holds by the triangle inequality. Step 2 divides by zero.\n### False"
LOOP = "Step 1 holds because of the bound. " * 60 + "\n### False"
JUDGE = {"endpoints": [{"url": "http://127.0.0.1:1/v1", "model": "m"}]}


def score(traces, **options) -> list[RewardOutput]:
    reward = build_reward("verdict_fluency", options)

    async def main():
        return [await reward.score(RewardInput(response=trace, label=False)) for trace in traces]

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def only_pv_rl(monkeypatch):
    """No other package is installed, as far as the plugin manager can see."""
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins.forget_plugins(reload=True)
    yield
    monkeypatch.undo()
    plugins.forget_plugins(reload=True)


@pytest.fixture
def register():
    """Register the hooks of a plugin, the package `theirs`."""

    def add(**hooks):
        members = {name: staticmethod(hookimpl(specname=name)(hook)) for name, hook in hooks.items()}
        plugins.plugin_manager().register(type("Theirs", (), members), name="theirs")
        plugins.forget_plugins()

    return add


def test_rules_alone_veto():
    good, loop, wrong = score([GOOD, LOOP, GOOD.replace("False", "True")])
    assert (good.score, good.valid, good.metrics["vetoed"]) == (1.0, True, 0.0)
    assert (loop.score, loop.valid, loop.metrics["vetoed"], loop.metrics["acc"]) == (0.0, True, 1.0, 1.0)
    assert loop.metrics["vetoed_by_judge"] == 0.0
    assert sum(value for name, value in loop.metrics.items() if name.startswith("rule_")) >= 1
    assert (wrong.score, wrong.metrics["vetoed"]) == (0.0, 0.0)


def test_a_row_that_is_vetoed_may_leave_the_step():
    good, loop = score([GOOD, LOOP], veto="abstain")
    assert [(one.score, one.valid) for one in (good, loop)] == [(1.0, True), (0.0, False)]


def test_a_judge_without_its_package_is_refused_with_the_package_and_the_way_out():
    with pytest.raises(ConfigError, match=r"pv-judge.*is not installed.*pip install.*judge=rules"):
        build_reward("verdict_fluency", {"judge": JUDGE})
    build_reward("verdict_fluency", {"judge": None, "on_failure": "abstain", "threshold": 0.7})


@pytest.mark.parametrize("inside", [False, True])
def test_a_judge_without_its_package_is_refused_where_a_config_is_checked(inside):
    """Before a run starts, and by the doctor."""
    function = {
        "path": "pkg://pv_rl.rewards.named",
        "name": "verdict_fluency",
        "reward_kwargs": {"judge": JUDGE},
    }
    if inside:
        options = {"rewards": {"verdict_fluency": 1.0}, "options": {"verdict_fluency": {"judge": JUDGE}}}
        function |= {"name": "weighted", "reward_kwargs": options}
    config = OmegaConf.create({"reward": {"custom_reward_function": function}})
    with pytest.raises(ConfigError, match="pv-judge"):
        check_reward(config)


def test_a_ledger_that_nobody_writes_is_a_warning(tmp_path, caplog):
    assert score([GOOD], ledger=str(tmp_path / "ledger"))[0].score == 1.0
    assert "pv-judge, which writes it, is not installed" in caplog.text


class Strict:
    """A judge of another package: it vetoes what does not name a step, and fails without an uid."""

    asks = True

    def __init__(self, rows: list[VetoRecord]) -> None:
        self.rows = rows

    def prepare(self, router_address: str | None = None) -> None:
        pass

    async def judge(self, sample: RewardInput) -> Judgment:
        if "fail" in sample.response:
            return Judgment(decision="failed", policy="drop_group", answer="no answer")
        return Judgment(decision="fluent" if "Step" in sample.response else "vetoed")

    async def record(self, row: VetoRecord) -> None:
        self.rows.append(row)


def test_a_judge_of_another_package_decides_and_gets_each_row_to_write_down(register):
    rows: list[VetoRecord] = []
    register(pv_rl_judges=lambda: [JudgeEntry(name="fluency", build=lambda judge: Strict(rows))])
    texts = [GOOD, "It is wrong.\n### False", "Servers fail.\n### False", LOOP]
    outputs = score(texts, judge=JUDGE)
    names = ("vetoed", "vetoed_by_judge", "judge_failed")
    assert [(one.score, one.valid, *(one.metrics[name] for name in names)) for one in outputs] == [
        (1, True, 0, 0, 0),
        (0, True, 1, 1, 0),
        (0, False, 0, 0, 1),
        (0, True, 1, 0, 0),
    ]
    assert [one.drop_group for one in outputs] == [False, False, True, False]
    assert [(row.decision, row.judgment is None, row.label) for row in rows] == [
        ("fluent", False, False),
        ("vetoed", False, False),
        ("failed", False, False),
        ("vetoed", True, False),
    ]


def test_a_plugins_rule_vetoes_where_the_config_names_it_and_nowhere_else(register):
    times = Parameter(name="times", default=3, low=1, meaning="so many exclamation marks")
    shouting = DegenerationRule(
        name="shouting",
        find=lambda text, times: [(text.index("!"), len(text))] if text.count("!") >= times else [],
        thresholds=(times,),
    )
    register(pv_rl_degeneration_rules=lambda: [shouting])
    loud = GOOD.replace(".", "!", 2)
    assert score([loud])[0].score == 1.0
    (vetoed,) = score([loud], rules={"shouting": {"times": 2}})
    assert (vetoed.score, vetoed.metrics["rule_shouting"]) == (0.0, 1.0)
    assert score([loud], rules={"shouting": True})[0].metrics["rule_shouting"] == 0.0
    with pytest.raises(ConfigError, match="shouting"):
        build_reward("verdict_fluency", {"rules": {"shoutin": True}})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"veto": "maybe"}, "veto"),
        ({"judge_unpaid": "maybe"}, "judge_unpaid"),
        ({"rules": {"sentence_lop": False}}, "sentence_loop"),
        ({"reward": "verdict_fluency"}, "a veto cannot be vetoed"),
        ({"reward": "verdit"}, "Did you mean verdict"),
        ({"reward": ["verdict"]}, "there is no reward \\['verdict'\\]"),
        ({"treshold": 1}, "Did you mean threshold"),
    ],
)
def test_options_that_are_wrong_are_refused_when_it_is_built(options, text):
    with pytest.raises(ConfigError, match=text):
        build_reward("verdict_fluency", options)
