"""The registry: built-ins come through the door that strangers use, and strangers' mistakes are their own."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from pv_rl import plugins
from pv_rl.errors import LossModeError, PluginError
from pv_rl.hookspecs import DegenerationRule, LossModeEntry, Parameter, hookimpl
from pv_rl.losses import grpo, mode, resolve_mode, response_weights
from pv_rl.rewards.degeneration import rules_from_config

OURS = ["grpo", "dapo", "balanced", "dr_grpo", "vl_norm", "ba"]
OURS += ["prompt_mean", "token_mean", "seq_mean", "constant", "luspo"]


def forget():
    plugins.forget_plugins()
    mode._resolve.cache_clear()


@pytest.fixture
def install():
    """Register a module-like plugin for one test."""
    manager = plugins.plugin_manager()
    added = []

    def register(name: str, entries: list[LossModeEntry] | types.ModuleType):
        plugin = entries if isinstance(entries, types.ModuleType) else types.ModuleType(name)
        if plugin is not entries:
            plugin.pv_rl_loss_modes = hookimpl(specname="pv_rl_loss_modes")(lambda: entries)  # pyright: ignore
        added.append(manager.register(plugin, name=name))
        forget()

    yield register
    for name in added:
        manager.unregister(name=name)
    forget()


@pytest.fixture
def installed(monkeypatch):
    """Let entry points be found as if packages with these modules were installed."""

    def find(**modules: str | types.ModuleType):
        found = []
        for name, module in modules.items():
            if isinstance(module, types.ModuleType):
                monkeypatch.setitem(sys.modules, module.__name__, module)
                module = module.__name__
            found.append(EntryPoint(name=name, value=module, group="pv_rl.plugins"))
        monkeypatch.setattr(plugins, "entry_points", lambda group: found)
        plugins.forget_plugins(reload=True)
        forget()

    yield find
    monkeypatch.undo()
    plugins.forget_plugins(reload=True)
    forget()


def test_a_plugins_mode_is_used_like_ours(install):
    eta = Parameter(name="eta", default=0.5, high=1.0)
    install(
        "theirs",
        [LossModeEntry(name="sharp", weighting=lambda r, b, eta: eta * grpo(r, b), parameters=(eta,))],
    )
    assert list(plugins.LOSS_MODES.entries()) == [*OURS, "sharp"]
    assert response_weights("sharp:0.25", [2, 2], "aa").tolist() == [0.0625, 0.0625]
    assert resolve_mode("sharp").spec == "sharp:0.5@prompt"


def test_a_name_claimed_twice_is_refused_with_both_owners_and_the_others_serve(install):
    install(
        "theirs", [LossModeEntry(name="grpo", weighting=grpo), LossModeEntry(name="sharp", weighting=grpo)]
    )
    with pytest.raises(PluginError, match=r"'grpo' is claimed by pv_rl.losses.weightings and by theirs"):
        resolve_mode("grpo")
    assert "grpo" not in plugins.LOSS_MODES.entries()
    with pytest.raises(LossModeError, match="Left out of the plugins: the loss mode 'grpo' is claimed by"):
        resolve_mode("grpp")
    assert resolve_mode("sharp").name == "sharp"
    assert resolve_mode("balanced").eta == 0.6


def test_a_rule_of_ours_that_a_plugin_claims_is_not_left_out_in_silence(install):
    rule = DegenerationRule(name="script_soup", find=lambda text: [])
    module = types.ModuleType("theirs")
    module.pv_rl_degeneration_rules = hookimpl(specname="pv_rl_degeneration_rules")(lambda: [rule])  # pyright: ignore
    install("theirs", module)
    with pytest.raises(PluginError, match="'script_soup' is claimed by pv_rules and by theirs"):
        rules_from_config({})


def test_an_alias_of_an_alias_is_refused(install):
    install("theirs", [LossModeEntry(name="again", weighting=grpo, same_as="again")])
    install("others", [LossModeEntry(name="twice", weighting=grpo, same_as="luspo")])
    for name in ("again", "twice"):
        with pytest.raises(LossModeError, match="which is not a mode"):
            resolve_mode(name)


def test_the_default_of_an_alias_is_its_own(install):
    eta = Parameter(name="eta", default=0.3, high=1.0)
    install(
        "theirs", [LossModeEntry(name="mild", weighting=grpo, parameters=(eta,), same_as="balanced@batch")]
    )
    assert [resolve_mode(spec).spec for spec in ("mild", "mild:0.9")] == [
        "balanced:0.3@batch",
        "balanced:0.9@batch",
    ]


def test_a_name_claimed_three_times_stays_refused(install):
    for owner in ("first", "second", "third"):
        install(owner, [LossModeEntry(name="sharp", weighting=grpo)])
    with pytest.raises(PluginError, match="'sharp' is claimed by"):
        resolve_mode("sharp")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (LossModeEntry(name="token-mean", weighting=grpo), "verl's own"),
        ("sharp", "is a pv_rl.hookspecs.LossModeEntry"),
    ],
)
def test_an_entry_that_cannot_be_served_is_kept_with_its_owner(install, entry, text):
    install("theirs", [entry, LossModeEntry(name="fine", weighting=grpo), entry])
    assert plugins.LOSS_MODES.broken()["theirs"].count(text) == 2
    assert list(plugins.LOSS_MODES.entries()) == [*OURS, "fine"]


@pytest.mark.parametrize("name", ["a:b", "a@b", "", "1a", "a b", None])
def test_a_name_that_no_spec_can_say_is_refused(name):
    with pytest.raises(PluginError, match="a name is a letter"):
        LossModeEntry(name=name, weighting=grpo)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"weighting": None}, "has weighting=None; expected a function"),
        ({"same_as": None}, "has same_as=None; expected a spec"),
        ({"parameters": (0.6,)}, "a tuple of pv_rl.hookspecs.Parameter"),
        ({"parameters": Parameter(name="eta")}, "a tuple of pv_rl.hookspecs.Parameter"),
        (
            {"parameters": (Parameter(name="a", default=1), Parameter(name="b"))},
            "without a default come first",
        ),
        ({"parameters": (Parameter(name="a"), Parameter(name="a"))}, "a name of its own"),
    ],
)
def test_an_entry_says_what_is_wrong_with_it(settings, text):
    with pytest.raises(PluginError, match=text):
        LossModeEntry(**({"name": "sharp", "weighting": grpo} | settings))


@pytest.mark.parametrize(
    "settings", [{"default": 7, "high": 1}, {"default": "0.6"}, {"low": 2, "high": 1}, {"name": "not a name"}]
)
def test_a_parameter_says_what_is_wrong_with_it(settings):
    with pytest.raises(PluginError, match="parameter"):
        Parameter(**({"name": "eta"} | settings))


@pytest.mark.parametrize("error", [TypeError("theirs"), SystemExit(3)])
def test_a_hook_that_ends_in_any_error_breaks_nobody_else(install, error):
    def fail():
        raise error

    plugin = types.ModuleType("theirs")
    plugin.pv_rl_loss_modes = hookimpl(specname="pv_rl_loss_modes")(fail)  # pyright: ignore
    install("theirs", plugin)
    assert resolve_mode("balanced").eta == 0.6
    assert repr(error) in plugins.LOSS_MODES.broken()["theirs"]


def test_a_plugin_that_breaks_breaks_nobody_else_and_is_named_where_its_mode_is_asked_for(install, caplog):
    install("theirs", None)  # pyright: ignore[reportArgumentType]
    install("others", [LossModeEntry(name="sharp", weighting=grpo)])
    assert response_weights("balanced", [1, 2, 5], "aaa").tolist() == pytest.approx([0.25, 0.15, 0.09])
    assert resolve_mode("sharp").name == "sharp"
    with pytest.raises(
        LossModeError, match=r"'gone'.*Left out of the plugins: theirs: its hook .* failed: TypeError"
    ):
        resolve_mode("gone")
    assert "what is wrong with the plugin theirs" in caplog.text


def test_installed_packages_that_do_not_load_are_named_and_the_others_serve(installed):
    fine = types.ModuleType("fine_plugin")
    fine.pv_rl_loss_modes = hookimpl(  # pyright: ignore[reportAttributeAccessIssue]
        specname="pv_rl_loss_modes"
    )(lambda: [LossModeEntry(name="sharp", weighting=grpo)])
    stray = types.ModuleType("stray_plugin")
    stray.pv_rl_no_such_hook = hookimpl(lambda: [])  # pyright: ignore[reportAttributeAccessIssue]
    installed(absent="no_such_module_anywhere", stray=stray, fine=fine)
    assert list(plugins.LOSS_MODES.entries()) == [*OURS, "sharp"]
    broken = plugins.LOSS_MODES.broken()
    assert [name.split(" (")[1] for name in broken] == [
        "absent = no_such_module_anywhere)",
        "stray = stray_plugin)",
    ]
    assert "ModuleNotFoundError" in next(iter(broken.values()))
    assert "pv_rl_no_such_hook" in list(broken.values())[1]


@pytest.mark.parametrize("scope", ["prompt", "batch"])
@pytest.mark.parametrize(
    "weighting",
    [
        lambda r, b: grpo(r, b) * float("nan"),
        lambda r, b: -grpo(r, b),
        lambda r, b: grpo(r, b).sum(),
        lambda r, b: grpo(r, b)[:1],
        lambda r, b: 0.5,
        lambda r, b: r.no_such_number,
    ],
)
def test_a_weighting_that_gives_no_weights_is_an_error_that_names_its_owner(install, weighting, scope):
    install("theirs", [LossModeEntry(name="sharp", weighting=weighting)])
    with pytest.raises(LossModeError, match=f"sharp@{scope}.* the author of theirs"):
        response_weights(f"sharp@{scope}", [1, 2, 0], "aab")
