"""`pv-rl quickstart` with the real trainer: one that ends, and one stopped by Ctrl-C.

The run that ends is verl's default trainer on pv-cpu with the paper's weighting. It is compared with the formula and
with the lab's reference loop, so that no other test has to start that trainer.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from reference import check_reference_loop
from trainer import check_rewards, check_step_metrics, check_weights, read_metrics

from pv_runs.report.runs import read_run

pytestmark = pytest.mark.slow

MODE = "balanced:0.4"


def start(out, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pv_rl.cli", "quickstart", "--out", str(out), *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "160"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may run us with it ignored
    )


def processes_of(out) -> list[str]:
    """Names of the processes that a run has, Ray's daemons and workers among them."""
    names = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get("PV_RL_PROCESS_TREE", "")
            if str(out.resolve()) in mark and process.status() != psutil.STATUS_ZOMBIE:
                names.append(process.name())
        except psutil.Error:
            pass
    return names


@dataclass(frozen=True)
class Run:
    """A quick start that has ended."""

    out: Path
    stdout: str
    left: list[str]
    """Processes of it that were there afterwards."""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """Two steps of the real trainer. The tests below read what they left behind."""
    out = tmp_path_factory.mktemp("quickstart") / "run"
    process = start(out, "--steps", "2", "--mode", MODE, "--seed", "3")
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stdout + stderr
    return Run(out, stdout, processes_of(out))


def test_it_ends_with_a_table_a_figure_and_the_numbers(run):
    assert f"before and after 2 steps of {MODE}" in run.stdout
    assert all(f"held-out accuracy, {kind} proofs" in run.stdout for kind in ("right", "wrong"))
    assert (run.out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert read_run(run.out, "run").state == "finished"
    before, *_, after = json.loads((run.out / "result.json").read_text())["points"]
    assert (before["step"], after["step"]) == (0, 2)
    assert before["right"] > 0.8
    assert before["wrong"] < 0.5
    assert 0 < after["length"] <= 128
    assert MODE in (run.out / "command.sh").read_text()


def test_it_shows_weights_and_stages_before_the_first_step(run):
    shown = [
        "how much each response",
        "Ray runs",
        "actor",
        "rollout server",
        "validating the untrained",
        "step 1/2",
    ]
    places = [run.stdout.index(text) for text in shown]
    assert places == sorted(places)


def test_the_commands_to_try_next_work(run):
    """The second one is another quick start."""
    weights, again, report = (
        line.split("  #")[0].strip() for line in run.stdout.split("To try next:\n")[1].splitlines()
    )
    assert again.endswith("pv-rl quickstart --mode dapo --seed 3 --steps 2")
    for command, shown in ((weights, "largest share"), (report, "report")):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="pv-cpu forks workers on Linux")
def test_the_driver_and_the_fork_server_import_verl_and_no_worker_does(run):
    """pv-cpu's platform prints a line where it is imported."""
    assert (run.out / "verl.log").read_text().count("Platform override from VERL_PLATFORM") == 2


def test_it_leaves_no_process_behind(run):
    assert run.left == []


def test_the_workers_used_the_papers_weights(run):
    check_weights(run.out, MODE, prompts=16, responses=8)


def test_each_reward_is_whether_the_verdict_is_the_label(run):
    check_rewards(run.out)


def test_the_step_metrics_are_those_of_the_rollouts(run):
    check_step_metrics(run.out, MODE)


def test_gradient_norm_and_losses_are_those_of_the_reference_loop(run):
    check_reference_loop(run.out, MODE)


def test_trainer_and_rollout_engine_agree_before_and_after_an_update(run):
    """The engine of pv-cpu got the weights of the first update."""
    metrics = read_metrics(run.out)
    assert {"actor/kl_loss", "actor/pg_loss", "actor/entropy"} <= set(metrics[1])
    assert {"val-core/lab/right/acc/mean@1", "val-core/lab/wrong/acc/mean@1"} <= set(metrics[0])
    differences = [metrics[step]["training/rollout_probs_diff_max"] for step in (1, 2)]
    assert max(differences) < 1e-5


@pytest.mark.parametrize("ending", ["ctrl-c", pytest.param("killed", marks=pytest.mark.paths)])
def test_a_run_that_is_stopped_leaves_no_process(tmp_path, ending):
    out = tmp_path / "it's a=b, run"
    run = start(out)
    deadline = time.monotonic() + 120
    while "raylet" not in processes_of(out):
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.5)
    (ray_folder,) = Path("/tmp").glob(f"pvrl-{run.pid}-*")
    if ending == "ctrl-c":
        run.send_signal(signal.SIGINT)
        stdout, stderr = run.communicate(timeout=60)
        assert run.returncode == 130
        assert "stopping the run" in stdout
        assert "nothing is left running" in stderr
        assert processes_of(out) == []
        assert not ray_folder.exists()
    else:  # kill -9: Linux interrupts verl, which takes Ray down
        run.kill()
        run.communicate(timeout=60)
        deadline = time.monotonic() + 60
        while processes_of(out):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        shutil.rmtree(ray_folder)
