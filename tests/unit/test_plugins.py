"""The registry: built-ins come through the door that strangers use, and strangers' mistakes are named."""

from __future__ import annotations

import types

import pytest

from pv_rl import plugins
from pv_rl.errors import LossModeError, PluginError
from pv_rl.hookspecs import LossModeEntry, hookimpl
from pv_rl.losses import grpo, response_weights


@pytest.fixture
def install(monkeypatch):
    """Register a module-like plugin for one test."""
    manager = plugins.plugin_manager()
    added = []

    def register(name: str, entries: list[LossModeEntry]):
        plugin = types.ModuleType(name)
        plugin.pv_rl_loss_modes = hookimpl(specname="pv_rl_loss_modes")(lambda: entries)  # pyright: ignore
        added.append(manager.register(plugin, name=name))
        plugins.loss_modes.cache_clear()

    yield register
    for name in added:
        manager.unregister(name=name)
    plugins.loss_modes.cache_clear()


def test_a_plugins_mode_is_used_like_ours(install):
    install(
        "theirs", [LossModeEntry(name="sharp", weighting=lambda r, b, eta: eta * grpo(r, b), default_eta=0.5)]
    )
    assert list(plugins.loss_modes()) == ["grpo", "dapo", "balanced", "sharp"]
    assert response_weights("sharp:0.25", [2, 2], "aa").tolist() == [0.0625, 0.0625]


def test_a_name_claimed_twice_is_refused_with_both_owners(install):
    install("theirs", [LossModeEntry(name="grpo", weighting=grpo)])
    with pytest.raises(PluginError, match=r"'grpo' is claimed by pv_rl.losses.builtin and by theirs"):
        plugins.loss_modes()


@pytest.mark.parametrize("name", ["a:b", "a@b", "", "1a", "a b"])
def test_a_name_that_no_spec_can_say_is_refused(install, name):
    install("theirs", [LossModeEntry(name=name, weighting=grpo)])
    with pytest.raises(PluginError, match="theirs adds a loss mode named"):
        plugins.loss_modes()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (LossModeEntry(name="token-mean", weighting=grpo), "verl's own"),
        (LossModeEntry(name="sharp", weighting=grpo, default_eta=7), "eta is in"),
        ("sharp", "is a pv_rl.hookspecs.LossModeEntry"),
    ],
)
def test_an_entry_that_cannot_be_served_is_refused_with_its_owner(install, entry, text):
    install("theirs", [entry])
    with pytest.raises(PluginError, match=f"the plugin theirs adds .*{text}"):
        plugins.loss_modes()


def test_a_hook_that_fails_is_named(install):
    install("theirs", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PluginError, match="of the plugin theirs failed: TypeError"):
        plugins.loss_modes()


def test_a_weighting_that_gives_no_weights_is_an_error(install):
    install("theirs", [LossModeEntry(name="broken", weighting=lambda r, b: grpo(r, b) * float("nan"))])
    with pytest.raises(LossModeError, match="broken@prompt gives"):
        response_weights("broken", [1, 2], "aa")
