"""The command of docs/gpu.md that compares ranks, on a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")

RANKS = Path(__file__).parents[2] / "benchmarks" / "ranks.py"
ONE_RANK = "3.03855"
"""What one rank has, see benchmarks/README.md; it changes with the lab's weights and words."""


def test_two_ranks_have_the_gradient_norm_of_one(tmp_path):
    asked = ["--cpu", "--ranks", "2", "--expect", ONE_RANK, "--tolerance", "1e-5"]
    command = [sys.executable, str(RANKS), *asked]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest relative difference of actor/grad_norm" in done.stdout
