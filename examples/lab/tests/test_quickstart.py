"""`pv-rl quickstart` with the real trainer: one step to the end, and one stopped by Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")


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


def test_one_step_ends_with_a_table_a_figure_and_the_numbers(tmp_path):
    out = tmp_path / "run"
    run = start(out, "--steps", "1", "--mode", "balanced:0.4", "--seed", "3")
    stdout, stderr = run.communicate(timeout=300)
    assert run.returncode == 0, stdout + stderr
    assert "before and after 1 steps of balanced:0.4" in stdout
    assert all(f"held-out accuracy, {kind} proofs" in stdout for kind in ("right", "wrong"))
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    result = json.loads((out / "result.json").read_text())
    before, after = result["points"]
    assert (before["step"], after["step"]) == (0, 1)
    assert before["right"] > 0.8
    assert before["wrong"] < 0.5
    assert 0 < after["length"] <= 128
    assert "balanced:0.4" in (out / "command.sh").read_text()
    assert processes_of(out) == []


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
