"""`pv-rl quickstart --trainer trl`: a run of TRL's own trainer, held to the formula and to the lab's reference loop."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from reference import check_reference_loop
from rich.console import Console
from trainer import check_rewards, check_weights, read_metrics
from trainer_grid import beside
from typer.testing import CliRunner

from pv_lab.evaluate import held_out
from pv_lab.prepare import DIFFICULTY, TEST_ROWS, TEST_SEED, write_data
from pv_lab.quickstart.run import run_quickstart
from pv_lab.quickstart.settings import Settings
from pv_rl.cli import app
from pv_rl.errors import LossModeError
from pv_runs.report.runs import read_run

TRL = "trl-1.16.0"
MODE = "balanced:0.4"


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """Two steps. The tests below read what they left behind."""
    beside(TRL)
    folder = tmp_path_factory.mktemp("quickstart") / "it's a=b, run"
    command = [sys.executable, "-m", "pv_rl.cli", "quickstart", "--trainer", "trl", "--out", str(folder)]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), f"{sys.prefix}/beside/{TRL}"]))
    done = subprocess.run(
        [*command, "--steps", "2", "--mode", MODE, "--seed", "3"],
        env={**os.environ, "COLUMNS": "160", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"before and after 2 steps of {MODE} with trl" in done.stdout
    return folder


@pytest.mark.slow
def test_it_ends_with_the_files_of_a_quick_start(out):
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert read_run(out, "run").state == "finished"
    before, *_, after = json.loads((out / "result.json").read_text())["points"]
    assert (before["step"], after["step"]) == (0, 2)
    assert before["right"] > 0.8
    assert before["wrong"] < 0.5
    assert 0 < after["length"] <= 128
    assert "pv_lab.quickstart.trl_main" in (out / "command.sh").read_text()
    assert (
        "trl" in (out / "hydra/.hydra/overrides.yaml").read_text()
    )  # by which pv-rl report names the setting


@pytest.mark.slow
def test_weights_and_rewards_are_those_of_the_formula(out):
    check_weights(out, MODE, prompts=16, responses=8)
    check_rewards(out)


@pytest.mark.slow
def test_gradient_norms_are_those_of_the_reference_loop(out):
    """Before and after an update, so that advantages, weights, clipping, learning rate and AdamW are those of verl.

    TRL adds 1e-4 to a standard deviation of at least 0.35, and verl 1e-6: 3e-4 of the gradient.
    """
    check_reference_loop(out, MODE, names=("grad_norm",), tolerance=5e-4)
    assert [read_metrics(out)[step]["actor/lr"] for step in (1, 2)] == [2e-4, 2e-4]


def test_the_held_out_proofs_are_those_of_verl(tmp_path):
    write_data(tmp_path, seed=3)
    rows = pq.read_table(tmp_path / "test.parquet").to_pylist()
    ours = [(sample.text, str(sample.label)) for sample in held_out(TEST_ROWS, DIFFICULTY, TEST_SEED)]
    assert ours == [(row["prompt"][0]["content"], row["reward_model"]["ground_truth"]) for row in rows]


def test_without_trl_the_quick_start_prints_what_to_install(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "trl" else find(name, *a)
    )
    answer = CliRunner().invoke(app, ["quickstart", "--trainer", "trl", "--out", str(tmp_path / "run")])
    assert answer.exit_code == 1
    text = " ".join(answer.stderr.split())
    assert "--trainer trl needs trl, which cannot be imported here" in text
    assert "pip install trl==1.16.0" in text
    assert not (tmp_path / "run").exists()


def test_an_unknown_trainer_is_refused(tmp_path):
    answer = CliRunner().invoke(app, ["quickstart", "--trainer", "tlr", "--out", str(tmp_path / "run")])
    assert answer.exit_code == 1
    assert "--trainer is 'tlr'; give verl or trl" in answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_mode_of_verls_own_is_refused_with_trl(tmp_path):
    settings = Settings(out=tmp_path / "run", mode="seq-mean-token-mean", trainer="trl")
    with pytest.raises(LossModeError, match="grpo@batch for seq-mean-token-mean"):
        run_quickstart(settings, Console())
    assert not (tmp_path / "run").exists()
