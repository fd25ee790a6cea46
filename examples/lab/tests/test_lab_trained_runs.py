"""`pv-rl lab run` with the real verl: two weightings of one seed for two steps, their report, and the command again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from pv_runs.run_folder import run_folders
from pv_runs.run_record import read_record

pytestmark = [pytest.mark.slow, pytest.mark.paths]  # two runs and a report take minutes

PROMPTS, RESPONSES, STEPS = 4, 4, 2
RUN = (
    *("run", "--out", "lab", "--modes", "grpo", "--modes", "dapo", "--seeds", "1", "--steps", str(STEPS)),
    f"data.train_batch_size={PROMPTS}",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
    f"actor_rollout_ref.rollout.n={RESPONSES}",
)


def pv_rl_lab(folder: Path, *arguments: str, timeout: int) -> str:
    """What it prints; it has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "pv_rl.cli", "lab", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.timeout(1200)  # two starts of the trainer, on a machine of half the speed
def test_two_weightings_are_trained_once_and_put_side_by_side(tmp_path):
    printed = pv_rl_lab(tmp_path, *RUN, timeout=900)
    assert "run 1 of 2: grpo, seed 0" in printed
    assert "2 runs are finished, 2 trained now" in printed
    folders = run_folders(tmp_path / "lab")
    assert sorted(folder.name for folder in folders) == ["dapo-seed-0", "grpo-seed-0"]
    for folder in folders:
        assert (read_record(folder).state, read_record(folder).attempts) == ("finished", 1)
        saved = folder / "checkpoints" / "latest_checkpointed_iteration.txt"
        assert saved.read_text().strip() == str(STEPS)

    printed = pv_rl_lab(tmp_path, "report", "lab", timeout=120)
    assert "order of lengths dapo > grpo" in printed
    known = json.loads((tmp_path / "lab" / "report" / "report.json").read_text())
    assert {setting["label"]: setting["step"] for setting in known["settings"]} == {
        "dapo": STEPS,
        "grpo": STEPS,
    }
    assert not [
        note for note in known["notes"] if "traces" in note.lower()
    ]  # they are there, and a word is a token
    for run in known["runs"]:
        assert run["series"]["held_out_wrong"]["step"] == [0, 1, 2]
        assert run["series"]["traces_short"]["step"] == [1, 2]
        rollouts = tmp_path / "lab" / run["name"] / "rollouts" / "1.jsonl"
        traces = [json.loads(line)["output"] for line in rollouts.read_text().splitlines()]
        assert len(traces) == PROMPTS * RESPONSES
        # At most 8 tokens, the end mark among them: 7 words.
        short = sum(len(trace.split()) <= 7 for trace in traces) / len(traces)
        assert run["series"]["traces_short"]["value"][0] == short > 0
    ends = {label: one["end"]["mean"]["mean"] for label, one in known["stages"]["length"].items()}
    (difference,) = known["order"][1]["differences"]
    assert difference["mean"] == pytest.approx(ends["dapo"] - ends["grpo"])

    assert "2 runs are finished, nothing to train" in pv_rl_lab(tmp_path, *RUN, timeout=120)
    assert [read_record(folder).attempts for folder in folders] == [1, 1]
