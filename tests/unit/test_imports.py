"""Lazy imports: what each module loads, seen in one interpreter that forks once for each, and public import paths."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

FORBIDDEN = {
    "pv_rl": {"torch", "verl", "ray", "hydra", "httpx", "transformers", "pydantic"},
    "pv_rl.verdict": {"torch", "verl"},
    "pv_rl.rewards": {"torch", "verl", "httpx", "pydantic"},
    "pv_rl.rewards.named": {"torch", "verl", "ray", "httpx"},
    "pv_rl.rewards.fluency_veto": {"torch", "verl", "ray", "httpx"},
    "pv_rl.cli": {"torch", "verl", "ray", "matplotlib", "httpx"},
    "pv_rl.losses": {"verl", "ray"},
    "pv_rl.recipes": {"torch", "verl", "ray"},
    "pv_rl.verl_adapter": {"torch", "verl", "ray"},
    "pv_judge.service": {"torch", "verl", "ray", "pyarrow"},
    "pv_runs.sentinel": {"torch", "verl", "ray", "scipy", "httpx"},
    "pv_runs.watch.command": {"torch", "verl", "ray", "matplotlib", "pyarrow", "numpy"},
    "pv_runs.plan.planning": {"torch", "verl", "ray"},
    "pv_runs.report.command": {"torch", "verl", "ray", "matplotlib"},
    "pv_runs.train.command": {"torch", "verl", "ray"},
    "pv_data": {"torch", "verl", "ray"},
}
IMPORT_EACH = """
import json, os, sys
for module, plugins in json.loads(sys.argv[1]):
    if os.fork() == 0:
        if plugins:
            os.environ["VERL_USE_EXTERNAL_PLUGINS"] = plugins
        __import__(module)
        print(json.dumps(sorted(sys.modules)), flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{module} cannot be imported")
"""


def imported(*modules: tuple[str, str]) -> list[set[str]]:
    """What each module loads in a fresh interpreter; with it, the value of VERL_USE_EXTERNAL_PLUGINS or ''."""
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, json.dumps(modules)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith('["')]
    assert len(lines) == len(modules)
    return [set(json.loads(line)) for line in lines]


def test_a_module_imports_no_more_than_it_may():
    loaded = imported(*((module, "") for module in FORBIDDEN))
    found = {
        module: forbidden & names
        for (module, forbidden), names in zip(FORBIDDEN.items(), loaded, strict=True)
        if forbidden & names
    }
    assert found == {}
    assert "torch" in loaded[list(FORBIDDEN).index("pv_rl.losses")], "the check sees what is imported"


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="verl is not installed")
def test_every_process_that_imports_verl_loads_no_more_of_pv_rl_than_the_hooks():
    """What else a patch needs, it imports when verl has imported what is patched, or when it is called."""
    ours, stock = imported(("verl", "pv_rl"), ("verl", "none"))
    assert {name for name in ours - stock if name.partition(".")[0] != "wrapt"} == {
        "pv_rl",
        "pv_rl.errors",
        "pv_rl.verl_adapter",
        "pv_rl.verl_adapter.contract",
        "pv_rl.verl_adapter.install",
        "pv_rl.verl_adapter.start",
    }


PUBLIC: dict[str, Sequence[str]] = {
    "pv_rl.errors": ("PvRlError", "ConfigError", "JudgeError", "RunHalted"),
    "pv_rl.hookspecs": (
        "hookimpl",
        "LossModeEntry",
        "RewardEntry",
        "Parameter",
        "DegenerationRule",
        "JudgeEntry",
    ),
    "pv_rl.losses": (
        "BatchStats",
        "ResponseStats",
        "response_weights",
        "weighted_sum",
        "resolve_mode",
        "balanced",
    ),
    "pv_rl.rewards": ("RewardInput", "RewardOutput", "Reward", "Prepared", "build_reward", "find_anomalies"),
    "pv_rl.rewards.degeneration": (
        "BUILTIN_RULES",
        "DegenerationRule",
        "find_anomalies",
        "rules_from_config",
    ),
    "pv_rl.rewards.fluency_veto": ("FluencyVeto",),
    "pv_rl.rewards.named": ("verdict", "verdict_fluency", "weighted"),
    "pv_rl.verdict": ("parse_verdict",),
    "pv_rl.hydra_configs": (),
    "pv_judge.veto": ("JudgedVeto",),
    "pv_data.audit": ("lower_bound",),
    "pv_eval": ("best_of_k",),
}
"""Paths that the config or the plugin of a user may hold."""


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_path_stays(module):
    loaded = importlib.import_module(module)
    assert [name for name in PUBLIC[module] if not hasattr(loaded, name)] == []


def test_entry_points_stay():
    from importlib.metadata import entry_points

    assert {"pv_rl"} <= {one.name for one in entry_points(group="verl.plugins")}
    assert {"pv_judge", "pv_runs"} <= {one.name for one in entry_points(group="pv_rl.plugins")}


def test_best_of_k_is_found_where_it_was_with_a_warning():
    with pytest.warns(DeprecationWarning, match="pv_eval"):
        from pv_data.evaluate import best_of_k
    import pv_eval

    assert best_of_k is pv_eval.best_of_k


def test_without_pv_eval_the_old_path_names_the_package(monkeypatch):
    import pv_data.evaluate

    monkeypatch.setitem(sys.modules, "pv_eval", None)
    with pytest.raises(ImportError, match="pv-eval"), pytest.warns(DeprecationWarning, match="next release"):
        _ = pv_data.evaluate.best_of_k
