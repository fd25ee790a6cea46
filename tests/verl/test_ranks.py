"""The command of docs/gpu.md that compares ranks, on a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")

RANKS = Path(__file__).parents[2] / "benchmarks" / "ranks.py"


def test_two_ranks_have_the_gradient_norm_of_one(tmp_path):
    command = [sys.executable, str(RANKS), "--cpu", "--ranks", "1", "2", "--tolerance", "1e-6"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest relative difference of actor/grad_norm" in done.stdout
