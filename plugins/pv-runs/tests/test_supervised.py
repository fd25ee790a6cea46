"""`run=sft_small`: what is checked before verl's SFT trainer starts. A real run: test_smol_real.py of the lab."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

from pv_rl.errors import ConfigError
from pv_runs.plan.command import plan_run
from pv_runs.preflight import Machine, Node, examine, faults
from pv_runs.recipes import compose

USER, ANSWER = {"role": "user", "content": "Is it right?"}, {"role": "assistant", "content": "### True"}


@pytest.fixture(autouse=True)
def _a_platform_that_is_chosen_already():
    """verl chooses a platform when Hydra imports it, and none can be chosen here by a device."""
    from verl.plugin.platform.platform_manager import get_platform

    get_platform()


def found(tmp_path, rows, *overrides, column="messages"):
    """The faults of a run with these conversations."""
    pq.write_table(pa.Table.from_pylist([{column: row} for row in rows]), tmp_path / "train.parquet")
    given = [f"data_dir={tmp_path}", "data.train_batch_size=2", *overrides]
    config = compose("sft_small", given)
    OmegaConf.set_struct(config, False)
    config.run_dir = str(tmp_path / "run")
    machine = Machine(
        cwd=tmp_path, environment={}, nodes=(Node(cpus=8, gpus=8),), has=lambda name: name != "flash_attn"
    )
    checks = ("settings", "packages", "gpus", "data")
    return faults(examine(config, machine, given, only=checks))


@pytest.mark.parametrize("cluster", ["gpu1", "cpu"])
def test_a_supervised_run_is_clean(tmp_path, cluster):
    assert found(tmp_path, [[USER, ANSWER]] * 2, f"cluster={cluster}") == []


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([USER], "row 2 of .* has no conversation that ends with an assistant message"),
        ([], "row 2"),
        (None, "row 2"),
        ([{"role": "assistant", "content": None}], "row 2"),
    ],
)
def test_a_row_without_an_answer_is_named(tmp_path, bad, text):
    (fault,) = found(tmp_path, [[USER, ANSWER], bad])
    assert fault.startswith("data: data.train_files: row 2 of ")
    assert "write a list of role and content in the column messages" in fault


def test_too_few_rows_another_column_and_a_missing_file_are_named(tmp_path):
    (fault,) = found(tmp_path, [[USER, ANSWER]])
    assert "data.train_files has 1 row, and a batch takes 2" in fault
    (fault,) = found(tmp_path, [[USER, ANSWER]] * 2, column="chat")
    assert "has no column messages; it has chat" in fault
    (fault,) = found(tmp_path, [[USER, ANSWER]] * 2, "data.val_files=nowhere.parquet")
    assert "data.val_files" in fault
    assert "does not exist" in fault


def test_several_gpus_a_missing_folder_and_a_wrong_value_are_refused(tmp_path):
    faults_of_eight = found(tmp_path, [[USER, ANSWER]] * 2, "cluster=node8")
    assert "trainer.nnodes and trainer.n_gpus_per_node are 1 and 8" in faults_of_eight[0]
    assert "verl refuses this config" in found(tmp_path, [[USER, ANSWER]] * 2, "engine.strategy=fspd")[0]
    assert (
        "flash_attn"
        in found(tmp_path, [[USER, ANSWER]] * 2, "model.override_config.attn_implementation=null")[0]
    )
    config = compose("sft_small", [])
    OmegaConf.set_struct(config, False)
    config.run_dir = str(tmp_path)
    machine = Machine(cwd=tmp_path, environment={}, nodes=(Node(cpus=8, gpus=1),))
    assert "settings: data_dir is missing" in faults(examine(config, machine, [], only=("settings",)))[0]


def test_a_supervised_run_has_no_plan():
    with pytest.raises(ConfigError, match="run=sft_small is supervised"):
        plan_run(["run=sft_small"], json_file=None)
