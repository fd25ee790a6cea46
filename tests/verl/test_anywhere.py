"""The runs and groups are found from another directory and from an installed wheel, by all three ways to use them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fork_server import run_fresh, run_module
from places import ROOT
from wheels import install_into

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

PARTS = ("pyproject.toml", "README.md", "LICENSE", "src", "hydra_configs", "examples/lab")
WAYS = {
    "pv-rl train": ("pv_rl.cli", "train", "run=8b", "cluster=node8", "recipe=dapo", "data_dir=DIR"),
    "a run under verl's command": (
        *("verl.trainer.main_ppo", "--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "8b"),
        *("cluster=node8", "recipe=dapo", "data_dir=DIR"),
    ),
    "groups in a verl command": (
        *("verl.trainer.main_ppo", "hydra.searchpath=[pkg://pv_rl.hydra_configs]"),
        *("+recipe=dapo", "reward=verdict_fluency", "+judge=deepseek"),
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with pv-rl as its wheel installs it."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for part in PARTS:
        (source / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, source / part)
    install_into(folder, source)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_the_configs_of_the_wheel_are_found_from_another_directory(way, site, tmp_path):
    arguments = (*WAYS[way], "--cfg", "job")
    found = f"import pv_rl; assert pv_rl.__file__.startswith({str(site)!r})\n"
    done = run_fresh(found + run_module(*arguments), path=site, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "loss_agg_mode: dapo@${recipe.scope}" in done.stdout
    assert "name: verdict_fluency" in done.stdout
    assert "model: deepseek-chat" in done.stdout
    assert ("nnodes: ${cluster.train.nodes}" in done.stdout) == ("8b" in " ".join(arguments))
