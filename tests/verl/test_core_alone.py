"""pv-rl alone, with verl and pv-cpu in a fresh environment: the doctor, and two steps of verl's trainer."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from places import ROOT
from wheels import install_into

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_lab", reason="pv-lab is not installed: pip install ./examples/lab")

OURS = ("pv_", "pv-", "__editable__")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The interpreter of an environment with the libraries of this one, but of our packages only pv-rl and pv-cpu."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv/bin/python"
    (own,) = (folder / "venv/lib").glob("python*/site-packages")
    libraries = folder / "libraries"
    libraries.mkdir()
    for path in filter(Path.is_dir, map(Path, sys.path)):
        if path.name == "site-packages":
            for one in path.iterdir():
                if (
                    not one.name.startswith(OURS)
                    and one.suffix != ".pth"
                    and not (libraries / one.name).exists()
                ):
                    (libraries / one.name).symlink_to(one)
    (own / "libraries.pth").write_text(str(libraries))
    install_into(own, ROOT, ROOT / "plugins/pv-cpu")
    return python


def run(python: Path, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VERL_PLATFORM": "cpu", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    command = [str(python), "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, **options)


@pytest.mark.paths
def test_the_doctor_is_green_with_pv_rl_alone(alone):
    done = run(alone, "pv_rl.cli", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "This environment will work" in done.stdout
    assert "judge" not in done.stdout


@pytest.mark.paths
@pytest.mark.parametrize("reward", ["verdict", "verdict_fluency"])
def test_pv_rl_alone_trains_two_steps(alone, reward, tmp_path):
    from pv_lab import MODEL_DIR

    dataset = ["pv_lab.dataset", "--out", str(tmp_path / "data"), "--train", "64", "--test", "8"]
    assert run(Path(sys.executable), *dataset).returncode == 0
    done = run(
        alone,
        *("verl.trainer.main_ppo", "--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab"),
        *("cluster=cpu", f"reward={reward}", "actor_rollout_ref.actor.loss_agg_mode=balanced"),
        *(f"data_dir={tmp_path}/data", f"model_path={MODEL_DIR}", f"run_dir={tmp_path}/run"),
        *("data.train_batch_size=4", "actor_rollout_ref.actor.ppo_mini_batch_size=4"),
        *("actor_rollout_ref.rollout.n=4", "trainer.val_before_train=false", "trainer.test_freq=-1"),
        *("trainer.total_training_steps=2", "trainer.logger=[console]"),
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    assert "step:2 " in output
    assert "pv_rl/reward/acc" in output
    assert ("pv_rl/reward/vetoed" in output) is (reward == "verdict_fluency")


@pytest.mark.paths
def test_pv_rl_alone_names_the_package_of_a_judge(alone, tmp_path):
    done = run(
        alone,
        *("verl.trainer.main_ppo", "--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab"),
        *("cluster=cpu", "reward=verdict_fluency", "judge=deepseek", f"data_dir={tmp_path}", "model_path=."),
        f"run_dir={tmp_path}/run",
    )
    assert done.returncode != 0
    assert "the package pv-judge, which asks it, is not installed" in done.stdout + done.stderr
