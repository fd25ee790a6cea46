"""The table of the trainer hooks: order, what hooks need and give, and what happens where that cannot be."""

from __future__ import annotations

import logging
import sys
import types

import pytest
from places import ROOT

from pv_rl import plugins, trainer_hooks
from pv_rl.errors import ConfigError, PluginError
from pv_rl.hookspecs import TrainerHook, hookimpl
from pv_rl.step_state import StepState
from pv_rl.trainer_hooks import check_table, run_hooks, table

STOCK = {"actor_rollout_ref": {"actor": {"loss_agg_mode": "token-mean"}}}
OURS = {"actor_rollout_ref": {"actor": {"loss_agg_mode": "balanced"}}}
REWARD = {"reward": {"custom_reward_function": {"path": "pkg://pv_rl.rewards.named"}}}


def forget():
    plugins.forget_plugins()
    table.cache_clear()
    trainer_hooks._function.cache_clear()


@pytest.fixture
def add():
    """Register plugins for one test: `add("pv-theirs", hook, ...)`."""
    manager = plugins.plugin_manager()
    plugins.TRAINER_HOOKS.entries()  # ours are first
    names = []

    def register(owner: str, *hooks: TrainerHook) -> None:
        plugin = types.ModuleType(owner)
        plugin.pv_rl_trainer_hooks = hookimpl(specname="pv_rl_trainer_hooks")(lambda: list(hooks))  # pyright: ignore
        manager.register(plugin, name=owner)
        names.append(owner)
        forget()

    yield register
    for name in names:
        manager.unregister(name=name)
    forget()


@pytest.fixture
def called(monkeypatch):
    """Functions that write down their names: `theirs:first`, `theirs:second`, and `theirs:fail`, which raises."""
    names: list[str] = []
    module = types.ModuleType("theirs")
    for name in ("first", "second"):
        setattr(module, name, lambda state, name=name: names.append(name))

    def fail(state):
        raise ZeroDivisionError

    module.fail = fail  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "theirs", module)
    return names


def hook(name: str, run: str = "theirs:first", point: str = "step_end", **others) -> TrainerHook:
    return TrainerHook(name=name, point=point, run=run, **others)


def test_the_hooks_that_are_installed_fit_together():
    assert table().problems == ()
    order = [one.name for one in table().hooks["after_advantage"]]
    assert order[:2] == ["reward-metrics", "row-weights"]
    assert {"weight-metrics", "judge-metrics"} <= set(order)
    for hooks in table().hooks.values():
        for one in hooks:
            assert callable(trainer_hooks._function(one.run))


def test_who_gives_a_value_runs_before_who_needs_it_whoever_came_first(add, called):
    add("pv-late", hook("late", "theirs:second", needs=("rate",)))
    add("pv-early", hook("early", gives=("rate",)))
    run_hooks("step_end", StepState(config=STOCK))
    assert called == ["first", "second"]


def test_of_a_value_that_several_give_the_last_giver_runs_before_who_needs_it(add):
    add("pv-reader", hook("reader", needs=("halt_reason",)))
    add("pv-giver", hook("giver", gives=("halt_reason",)))
    assert [one.name for one in table().hooks["step_end"]][-1] == "reader"


def test_a_value_that_nobody_gives_is_a_problem_that_names_the_plugin(add):
    add("pv-lonely", hook("lonely", needs=("rate",)), hook("led", needs=("rate2",), gives=("rate3",)))
    first, second = table().problems
    assert first.startswith("the trainer hook 'lonely' of pv-lonely needs 'rate' at step_end")
    assert "'led' of pv-lonely" in second
    assert "lonely" not in [one.name for one in table().hooks["step_end"]]


def test_a_value_may_not_come_from_a_later_point(add):
    add("pv-x", hook("eager", needs=("validation",)))
    assert "'eager' of pv-x" in table().problems[0]


def test_two_that_give_the_same_are_a_problem_that_names_both_and_ours_runs(add):
    add("pv-theirs", hook("mine", point="before_advantage", gives=("absent",)))
    (problem,) = table().problems
    assert "'absent'" in problem
    assert "'abstain' of pv_rl.trainer_hooks" in problem
    assert "'mine' of pv-theirs" in problem
    assert [one.name for one in table().hooks["before_advantage"]] == ["abstain"]


def test_a_point_that_does_not_exist_is_a_problem_with_the_nearest_one(add):
    add("pv-theirs", hook("mine", point="step_ends"))
    assert "Did you mean step_end?" in table().problems[0]


def test_a_problem_refuses_our_modes_and_lets_a_stock_run_go_on(add, caplog):
    add("pv-lonely", hook("lonely", needs=("rate",)))
    for config in (OURS, STOCK | REWARD):
        with pytest.raises(PluginError, match="'lonely' of pv-lonely"):
            check_table(config)
    with caplog.at_level(logging.ERROR):
        check_table(STOCK)
    assert "'lonely' of pv-lonely" in caplog.text


def test_a_name_that_two_plugins_claim_refuses_our_modes_too(add):
    add("pv-theirs", hook("abstain", point="before_advantage"))
    with pytest.raises(PluginError, match=r"'abstain' is claimed by pv_rl\.trainer_hooks and by pv-theirs"):
        check_table(OURS)


def test_a_key_whose_package_is_not_installed_is_refused_with_its_name(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins._loaded.cache_clear()
    forget()
    try:
        assert [one.name for one in table().hooks["fit_end"]] == []
        check_table(OURS | REWARD)
        with pytest.raises(
            ConfigError, match=r"key sentinel.* package pv-runs, .*pip install \./plugins/pv-judge"
        ):
            check_table(OURS | {"sentinel": {"action": "log"}})
    finally:
        monkeypatch.undo()
        plugins._loaded.cache_clear()
        forget()


@pytest.mark.parametrize(
    ("condition", "config", "runs"),
    [
        ("", STOCK, True),
        ("mode", STOCK, False),
        ("mode", OURS, True),
        ("mode", STOCK | {"critic": {"loss_agg_mode": "grpo"}}, True),
        ("mode", None, True),
        ("reward", OURS, False),
        ("reward", REWARD, True),
        ("their_key", STOCK, False),
        ("their_key", STOCK | {"their_key": {}}, True),
        ("their_key", None, False),
    ],
)
def test_a_hook_runs_where_its_condition_holds(add, called, condition, config, runs):
    add("pv-theirs", hook("mine", point="fit_end", condition=condition))
    run_hooks("fit_end", StepState(config=config))
    assert (called == ["first"]) == runs


def test_a_hook_for_the_log_alone_ends_no_run_and_says_so_once(add, called, caplog):
    add("pv-theirs", hook("mine", "theirs:fail", failed="theirs/failed"), hook("next"))
    state = StepState(config=STOCK)
    for _ in range(2):
        run_hooks("step_end", state)
    assert state.metrics == {"theirs/failed": 1.0}
    assert called == ["first", "first"]
    assert caplog.text.count("trainer hook mine failed") == 1


def test_what_another_hook_raises_ends_the_run(add, called):
    add("pv-theirs", hook("mine", "theirs:fail"))
    with pytest.raises(ZeroDivisionError):
        run_hooks("step_end", StepState(config=STOCK))


@pytest.mark.parametrize(
    "wrong", [{"run": "theirs.first"}, {"name": "no blanks"}, {"needs": "rows"}, {"run": print}]
)
def test_an_entry_that_cannot_be_is_refused_when_it_is_made(wrong):
    with pytest.raises(PluginError):
        TrainerHook(**({"name": "mine", "point": "step_end", "run": "theirs:first"} | wrong))


PAGE = (ROOT / "docs" / "internals" / "verl.md").read_text()


def test_a_plugin_whose_hook_fails_is_a_problem_that_stops_our_runs(add):
    plugin = types.ModuleType("pv-broken")

    def fail():
        raise ZeroDivisionError

    plugin.pv_rl_trainer_hooks = hookimpl(specname="pv_rl_trainer_hooks")(fail)  # pyright: ignore
    plugins.plugin_manager().register(plugin, name="pv-broken")
    try:
        forget()
        assert "pv-broken: its hook pv_rl_trainer_hooks failed" in " ".join(table().problems)
        with pytest.raises(PluginError, match="pv-broken"):
            trainer_hooks.check_table(REWARD)
    finally:
        plugins.plugin_manager().unregister(name="pv-broken")
        forget()


def test_the_page_lists_the_hooks_of_each_point_in_order():
    listed = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and cells[0].strip("` ") in trainer_hooks.POINTS:
            listed[cells[0].strip("` ")] = [name.strip("` ") for name in cells[2].split(",")]
    assert listed == {point: [one.name for one in hooks] for point, hooks in table().hooks.items()}


def test_the_hook_of_the_page_runs(add, monkeypatch):
    code = PAGE.partition("# A trainer hook of your own")[2].partition("```python\n")[2].partition("```")[0]
    module = types.ModuleType("my_package.hooks")
    exec(code, vars(module))
    monkeypatch.setitem(sys.modules, "my_package", types.ModuleType("my_package"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys.modules["my_package"], "hooks", module, raising=False)
    add("my-package", *module.pv_rl_trainer_hooks())
    (one,) = (hook for hook in table().hooks["after_advantage"] if hook.name == "longest")
    state = StepState(config=OURS, rows=types.SimpleNamespace(lengths=[1, 1]))  # pyright: ignore
    trainer_hooks._function(one.run)(state)
    assert state.metrics == {"my_package/longest": 1}
    assert state.halt_reason == "the policy has stopped answering"
