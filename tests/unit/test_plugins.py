"""The registry: built-ins come through the door that strangers use, and strangers' mistakes are their own."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from pv_rl import plugins
from pv_rl.errors import LossModeError, PluginError
from pv_rl.hookspecs import LossModeEntry, Parameter, hookimpl
from pv_rl.losses import grpo, mode, resolve_mode, response_weights

OURS = ["grpo", "dapo", "balanced", "dr_grpo", "vl_norm"]


def forget():
    plugins._registry.cache_clear()
    mode._resolve.cache_clear()


@pytest.fixture
def install():
    """Register a module-like plugin for one test."""
    manager = plugins.plugin_manager()
    added = []

    def register(name: str, entries: list[LossModeEntry]):
        plugin = types.ModuleType(name)
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
            found.append(EntryPoint(name=name, value=module, group=plugins.ENTRY_POINT_GROUP))
        monkeypatch.setattr(plugins, "entry_points", lambda group: found)
        monkeypatch.setattr(plugins, "_failed_to_load", {})
        plugins.plugin_manager.cache_clear()
        forget()

    yield find
    monkeypatch.undo()
    plugins.plugin_manager.cache_clear()
    forget()


def test_a_plugins_mode_is_used_like_ours(install):
    eta = Parameter(name="eta", default=0.5, high=1.0)
    install(
        "theirs",
        [LossModeEntry(name="sharp", weighting=lambda r, b, eta: eta * grpo(r, b), parameters=(eta,))],
    )
    assert list(plugins.loss_modes()) == [*OURS, "sharp"]
    assert response_weights("sharp:0.25", [2, 2], "aa").tolist() == [0.0625, 0.0625]
    assert resolve_mode("sharp").spec == "sharp:0.5@prompt"


def test_a_name_claimed_twice_is_refused_with_both_owners_and_the_others_serve(install):
    install(
        "theirs", [LossModeEntry(name="grpo", weighting=grpo), LossModeEntry(name="sharp", weighting=grpo)]
    )
    with pytest.raises(PluginError, match=r"'grpo' is claimed by pv_rl.losses.builtin and by theirs"):
        resolve_mode("grpo")
    assert "grpo" not in plugins.loss_modes()
    assert resolve_mode("sharp").name == "sharp"
    assert resolve_mode("balanced").eta == 0.6


def test_a_name_claimed_three_times_stays_refused(install):
    for owner in ("first", "second", "third"):
        install(owner, [LossModeEntry(name="sharp", weighting=grpo)])
    with pytest.raises(PluginError, match="'sharp' is claimed by"):
        resolve_mode("sharp")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        *(
            (LossModeEntry(name=name, weighting=grpo), "a name is a letter")
            for name in ("a:b", "a@b", "", "1a", "a b")
        ),
        (LossModeEntry(name="token-mean", weighting=grpo), "verl's own"),
        (
            LossModeEntry(name="s", weighting=grpo, parameters=(Parameter(name="eta", default=7, high=1),)),
            r"default 7 for eta, which is in \[0, 1\]",
        ),
        ("sharp", "is a pv_rl.hookspecs.LossModeEntry"),
    ],
)
def test_an_entry_that_cannot_be_served_is_kept_with_its_owner(install, entry, text):
    import re

    install("theirs", [entry, LossModeEntry(name="fine", weighting=grpo)])
    assert re.search(text, plugins.broken_plugins()["theirs"])
    assert list(plugins.loss_modes()) == [*OURS, "fine"]


def test_a_plugin_that_breaks_breaks_nobody_else_and_is_named_where_its_mode_is_asked_for(install, caplog):
    install("theirs", None)  # pyright: ignore[reportArgumentType]
    install("others", [LossModeEntry(name="sharp", weighting=grpo)])
    assert response_weights("balanced", [1, 2, 5], "aaa").tolist() == pytest.approx([0.25, 0.15, 0.09])
    assert resolve_mode("sharp").name == "sharp"
    with pytest.raises(
        LossModeError, match=r"'gone'.*could not be used: theirs: its hook .* failed: TypeError"
    ):
        resolve_mode("gone")
    assert "goes on without the plugin theirs" in caplog.text


def test_installed_packages_that_do_not_load_are_named_and_the_others_serve(installed):
    fine = types.ModuleType("fine_plugin")
    fine.pv_rl_loss_modes = hookimpl(  # pyright: ignore[reportAttributeAccessIssue]
        specname="pv_rl_loss_modes"
    )(lambda: [LossModeEntry(name="sharp", weighting=grpo)])
    stray = types.ModuleType("stray_plugin")
    stray.pv_rl_no_such_hook = hookimpl(lambda: [])  # pyright: ignore[reportAttributeAccessIssue]
    installed(absent="no_such_module_anywhere", stray=stray, fine=fine)
    assert list(plugins.loss_modes()) == [*OURS, "sharp"]
    broken = plugins.broken_plugins()
    assert [name.split(" (")[1] for name in broken] == [
        "absent = no_such_module_anywhere)",
        "stray = stray_plugin)",
    ]
    assert "ModuleNotFoundError" in next(iter(broken.values()))
    assert "pv_rl_no_such_hook" in list(broken.values())[1]


def test_a_weighting_that_gives_no_weights_is_an_error(install):
    install("theirs", [LossModeEntry(name="broken", weighting=lambda r, b: grpo(r, b) * float("nan"))])
    with pytest.raises(LossModeError, match="broken@prompt gives"):
        response_weights("broken", [1, 2], "aa")
