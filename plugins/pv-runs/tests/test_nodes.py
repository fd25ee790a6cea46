"""A Ray cluster whose nodes differ: what the run's driver finds before verl starts a worker. Ray is the real one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile

import pytest
import yaml
from fork_server import run_fresh, run_module

pytest.importorskip("verl", reason="the runs stand on verl's configs: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from pathlib import Path

from pv_rl.errors import ConfigError
from pv_runs.nodes import check_folder
from pv_runs.recipes.compose import compose, split_run

CLUSTER = """
import os
from pathlib import Path
import ray
from omegaconf import OmegaConf
from ray.cluster_utils import Cluster
import verl
from pv_rl.step_state import StepState
from pv_runs.nodes import check

folder = Path(os.environ["FOLDER"])
node = dict(num_cpus=1, object_store_memory=100_000_000)
cluster = Cluster(initialize_head=True, head_node_args=dict(node, include_dashboard=False))
cluster.add_node(**node)
cluster.add_node(**node, env_vars={"VERL_USE_EXTERNAL_PLUGINS": "none"})
cluster.add_node(**node, env_vars={"PYTHONPATH": str(folder / "without")})
config = OmegaConf.create({
    "trainer": {"default_local_dir": str(folder / "checkpoints")},
    "actor_rollout_ref": {"model": {"path": str(folder / "model")}},
    "data": {"train_files": str(folder / "a.parquet"), "val_files": [str(folder / "b.parquet")]},
})
check(StepState(config=config))
try:
    ray.init(address=cluster.address, log_to_driver=False)
except Exception as error:
    print(type(error).__name__, error)
finally:
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_without_pv_rl_ends_the_run_before_a_worker_starts_and_is_named(tmp_path):
    (tmp_path / "without/pv_rl").mkdir(parents=True)
    (tmp_path / "without/pv_rl/__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pv_rl'\")"
    )
    (tmp_path / "model").mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as own:  # else Ray has every other test join this cluster
        done = run_fresh(
            CLUSTER, FOLDER=str(tmp_path), RAY_AUTH_MODE="disabled", RAY_ADDRESS="", RAY_TMPDIR=own
        )
    _, _, refused = done.stdout.partition("SetupError ")
    assert refused, done.stdout + done.stderr
    assert refused.count("No module named 'pv_rl'") == 1
    assert refused.count("verl does not load pv-rl (VERL_USE_EXTERNAL_PLUGINS=none)") == 1
    assert refused.count("; node ") == 1, "the node that is like this one is not named"


@pytest.mark.parametrize("folder", ["runs", "../_ray_pkg_b/runs", "/tmp/ray/session_x/working_dir_files/y"])
def test_a_folder_that_ray_deletes_is_refused(folder, tmp_path, monkeypatch):
    (scratch := tmp_path / "runtime_resources/working_dir_files/_ray_pkg_a").mkdir(parents=True)
    monkeypatch.chdir(scratch)
    with pytest.raises(ConfigError, match=r"Ray deletes it after the job.*absolute path"):
        check_folder(Path(folder), "hydra.run.dir")
    check_folder(tmp_path / "shared", "hydra.run.dir")


def test_train_refuses_to_start_in_a_folder_that_ray_deletes(tmp_path):
    (scratch := tmp_path / "working_dir_files/_ray_pkg_a").mkdir(parents=True)
    done = run_fresh(run_module("pv_rl.cli", "train", "run=lab", "cluster=cpu"), cwd=scratch)
    assert done.returncode == 1
    assert "hydra.run.dir is runs, in the working directory" in " ".join((done.stdout + done.stderr).split())
    assert os.listdir(scratch) == []


def test_variables_of_a_ray_job_do_not_end_a_run_that_sets_them_too(tmp_path):
    """Ray merges what both set only with this variable; command.sh has the environment of verl's process."""
    (tmp_path / "ends.py").write_text("")
    job = json.dumps({"runtime_env": {"env_vars": {"HF_HUB_OFFLINE": "0"}}, "metadata": {}})
    arguments = ("run=lab", "cluster=cpu", "launch.module=ends", "hydra.run.dir=r")
    run_fresh(
        run_module("pv_rl.cli", "train", *arguments),
        cwd=tmp_path,
        path=tmp_path,
        RAY_JOB_CONFIG_JSON_ENV_VAR=job,
    )
    command = (tmp_path / "r/command.sh").read_text()
    assert "\n  RAY_OVERRIDE_JOB_RUNTIME_ENV=1 \\\n" in command


def test_the_files_for_clusters_name_a_run_that_composes():
    files = Path(__file__).parents[3] / "examples/clusters"
    job = yaml.safe_load((files / "rayjob.yaml").read_text())["spec"]
    command = shlex.split(job["entrypoint"])
    slurm = (files / "slurm.sh").read_text()
    named = next(line for line in slurm.splitlines() if line.startswith("#     RUN="))
    for arguments in (
        command[2:],
        [*shlex.split(named.partition("slurm.sh ")[2]), "hydra.run.dir=/shared/8b"],
    ):
        run, overrides = split_run(arguments)
        config = compose(run, [one for one in overrides if not one.startswith("hydra.")])
        assert (config.run, config.trainer.nnodes, config.recipe.name) == ("8b", 1, "balanced-0.6")
    workers = job["rayClusterSpec"]["workerGroupSpecs"][0]
    assert workers["replicas"] == 2 == config.cluster.nodes
    assert workers["template"]["spec"]["containers"][0]["image"] is not None, "merged from the head's"
    subprocess.run(["bash", "-n", files / "slurm.sh"], check=True)
