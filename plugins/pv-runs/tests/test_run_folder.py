"""The run folder: its paths are those of the configs, and a sweep is a folder of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("verl", reason="the configs stand on verl's: pip install 'pv-rl[verl]'")

from omegaconf import OmegaConf

from pv_rl.errors import ConfigError, DataError
from pv_runs.hydra_record import saved_config
from pv_runs.recipes import compose
from pv_runs.run_folder import RunFolder, check_unused, find_runs, run_folders
from pv_runs.run_record import Record, versions, write_record


def test_the_paths_are_those_that_a_composed_run_writes_to():
    run = RunFolder(Path("/runs/x"))
    config = compose("small", ["run_dir=/runs/x", "reward=verdict_fluency", "sentinel=log"])
    kwargs = config.reward.custom_reward_function.reward_kwargs
    found = (config.trainer.default_local_dir, config.trainer.rollout_data_dir, kwargs.ledger)
    assert tuple(map(Path, found)) == (run.checkpoints, run.rollouts, run.ledger)
    assert Path(config.sentinel.file) == run.sentinel


def test_the_version_of_verl_is_that_of_the_verl_that_is_imported(monkeypatch):
    monkeypatch.setattr("verl.__version__", "0.10.0.dev")
    assert versions()["verl"] == "0.10.0.dev"


def test_a_sweep_holds_runs_and_is_none(tmp_path):
    for name in ("10", "9"):
        (tmp_path / name).mkdir()
        write_record(tmp_path / name, Record(state="finished", attempts=1))
    assert [run.name for run in run_folders(tmp_path)] == ["9", "10"]
    assert run_folders(tmp_path) == find_runs(tmp_path)
    assert run_folders(tmp_path / "9") == [tmp_path / "9"]
    with pytest.raises(ConfigError, match="already contains a run"):
        check_unused(tmp_path)
    check_unused(tmp_path / "new")


def test_the_saved_config_has_what_resumes_have_changed(tmp_path):
    run = RunFolder(tmp_path)
    with pytest.raises(DataError, match=r"config\.yaml is missing"):
        saved_config(tmp_path, ())
    run.config.parent.mkdir()
    OmegaConf.save(OmegaConf.create({"trainer": {"steps": 3, "lr": 1.0}}), run.config)
    config = saved_config(tmp_path, ["++trainer.steps=4", "trainer.new=x"])
    assert config == {"trainer": {"steps": 4, "lr": 1.0, "new": "x"}}
    run.config.write_text("- 1\n")
    with pytest.raises(DataError, match=r"config\.yaml"):
        saved_config(tmp_path, ())
