"""Who may import whom. A second test shows that the first can fail."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest


def imported(statement: str, plugins: str = "auto") -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    environment = {**os.environ, "VERL_USE_EXTERNAL_PLUGINS": plugins}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("pv_rl", {"torch", "verl", "ray", "hydra", "httpx", "transformers"}),
        ("pv_rl.verdict", {"torch", "verl"}),
        ("pv_rl.errors", {"torch", "verl"}),
        ("pv_rl.rewards", {"torch", "verl"}),
        ("pv_rl.rewards.named", {"torch", "verl", "ray"}),
        ("pv_rl.rewards.fluency_veto", {"torch", "verl", "ray"}),
        ("pv_judge.service", {"torch", "verl", "ray", "pyarrow"}),
        ("pv_runs.sentinel", {"torch", "verl", "ray", "scipy", "httpx"}),
        ("pv_runs.watch.command", {"torch", "verl", "ray", "matplotlib", "pyarrow", "numpy"}),
        ("pv_rl.cli", {"torch", "verl", "ray", "matplotlib"}),
        ("pv_rl.losses", {"verl", "ray"}),
        ("pv_rl.recipes", {"torch", "verl", "ray"}),
        ("pv_runs.plan.planning", {"torch", "verl", "ray"}),
        ("pv_runs.report.command", {"torch", "verl", "ray", "matplotlib"}),
        ("pv_runs.train.command", {"torch", "verl", "ray"}),
        ("pv_rl.verl_adapter", {"torch", "verl", "ray"}),
        ("pv_data", {"torch", "verl", "ray"}),
    ],
)
def test_a_module_imports_no_more_than_it_may(module, forbidden):
    assert not forbidden & imported(f"import {module}")


def test_the_test_above_can_fail():
    assert "torch" in imported("import pv_rl.losses")


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="verl is not installed")
def test_every_process_that_imports_verl_loads_no_more_of_pv_rl_than_the_hooks():
    """What else a patch needs, it imports when verl has imported what is patched, or when it is called."""
    added = imported("import verl", "pv_rl") - imported("import verl", "none")
    assert {name for name in added if name.partition(".")[0] != "wrapt"} == {
        "pv_rl",
        "pv_rl.errors",
        "pv_rl.verl_adapter",
        "pv_rl.verl_adapter.contract",
        "pv_rl.verl_adapter.install",
        "pv_rl.verl_adapter.start",
    }
