"""`examples/loss_plugin`, installed as a stranger's package is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from pv_rl import plugins
from pv_rl.losses import mode, response_weights

sys.path.insert(0, str(Path(__file__).parent))
from trainer import check_step_metrics, check_weights, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "loss_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder for PYTHONPATH that holds the package and its metadata, as site-packages would."""
    folder, source = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("source") / "loss_plugin"
    shutil.copytree(EXAMPLE, source)  # a build leaves its files beside the sources
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
    command = [*pip, "--target", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def in_this_process(installed, monkeypatch):
    monkeypatch.syspath_prepend(installed)
    for cached in (plugins._loaded, plugins._registry, mode._resolve):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (plugins._loaded, plugins._registry, mode._resolve):
        cached.cache_clear()


def test_the_example_gives_the_weights_that_it_says(in_this_process):
    assert response_weights("power:0.5", [1, 4], "aa").tolist() == pytest.approx([1 / 3, 1 / 6])
    lengths, groups = [1, 2, 5, 9], "aaab"
    for ours, same in (("power:0", "grpo"), ("power:1", "dapo"), ("power:1@batch", "dapo@batch")):
        expected = response_weights(same, lengths, groups).tolist()
        assert response_weights(ours, lengths, groups).tolist() == pytest.approx(expected)


def test_verl_knows_the_mode_where_the_package_is_installed_and_nowhere_else(installed):
    code = (
        "from verl.workers.config import ActorConfig\n"
        "ActorConfig(loss_agg_mode='power:0.3', strategy='fsdp2', rollout_n=2, ppo_micro_batch_size_per_gpu=1)\n"
    )

    def run(**env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-c", code]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})

    assert run(PYTHONPATH=str(installed)).returncode == 0
    assert "names no mode that pv-rl knows: 'power'" in run().stderr


@pytest.mark.slow
def test_the_example_trains_in_driver_and_workers_of_verls_legacy_trainer(
    tmp_path, installed, in_this_process
):
    pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")
    mode = "actor_rollout_ref.actor.loss_agg_mode=power"
    train(tmp_path, mode, "trainer.use_v1=False", PYTHONPATH=str(installed))
    check_weights(tmp_path, "power:0.5")
    check_step_metrics(tmp_path, "power:0.5")
