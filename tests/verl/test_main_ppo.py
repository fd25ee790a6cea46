"""The real `verl.trainer.main_ppo` on a CPU with `balanced:0.6`, and without pv-rl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pv_rl.losses import response_weights

pytestmark = pytest.mark.slow

MAX_RESPONSE = 128


def main_ppo(folder: Path, *overrides: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Two steps of the lab's run in a process of its own."""
    from pv_rl.lab import MODEL_DIR
    from pv_rl.lab.dataset import make_rows, write_dataset

    for split in ("train", "test"):
        rows = make_rows(split=split, count=16, seed=5, difficulty=2, p_true=0.5)
        write_dataset(rows, folder / f"{split}.parquet")
    command = [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab", "+cluster=cpu"),
        f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/test.parquet",
        f"actor_rollout_ref.model.path={MODEL_DIR}",
        "data.train_batch_size=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.rollout.n=4",
        "trainer.total_training_steps=2",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"hydra.run.dir={folder}/hydra",
        *overrides,
    ]
    settings = {
        "VERL_PLATFORM": "cpu",
        "HF_HUB_OFFLINE": "1",
        "VERL_FILE_LOGGER_PATH": f"{folder}/metrics.jsonl",
    }
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **settings, **env},
    )


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_two_steps_train_with_the_papers_weights(tmp_path):
    """The weights that the worker says it used are those of the responses that verl says it trained on."""
    done = main_ppo(tmp_path, "actor_rollout_ref.actor.loss_agg_mode=balanced:0.6")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    metrics = {line["step"]: line["data"] for line in read_lines(tmp_path / "metrics.jsonl")}
    assert set(metrics) == {0, 1, 2}

    for step in (1, 2):
        rollouts = read_lines(tmp_path / "rollouts" / f"{step}.jsonl")
        words = [len(row["output"].split()) for row in rollouts]
        # One word is one token; the end-of-text mark counts and is not shown, unless the response was cut off.
        lengths = [n + 1 if n < MAX_RESPONSE else n for n in words]
        assert len(lengths) == 16
        assert sum(lengths) / 16 == pytest.approx(metrics[step]["response_length/mean"])
        groups = [row["input"] for row in rollouts]
        assert len(set(groups)) == 4

        weights = response_weights("balanced:0.6", lengths, groups)
        assert metrics[step]["actor/pv_rl/update_mass"] == pytest.approx(1.0, rel=1e-5)
        assert metrics[step]["actor/pv_rl/token_weight_max"] == pytest.approx(weights.max().item(), rel=1e-5)
        assert metrics[step]["actor/pv_rl/token_weight_min"] == pytest.approx(weights.min().item(), rel=1e-5)
        assert weights.max() > 1.5 * weights.min()  # lengths differ, so another weighting would show
        assert {"actor/kl_loss", "actor/pg_loss", "actor/entropy"} <= set(metrics[step])

        for row in rollouts:
            assert row["score"] == float(row["output"].split()[-1] == row["gts"])
        assert metrics[step]["critic/score/mean"] == pytest.approx(sum(row["score"] for row in rollouts) / 16)
    assert {"val-core/lab/right/acc/mean@1", "val-core/lab/wrong/acc/mean@1"} <= set(metrics[0])


def test_without_pv_rl_verl_refuses_the_same_config_in_its_own_words(tmp_path):
    done = main_ppo(
        tmp_path, "actor_rollout_ref.actor.loss_agg_mode=balanced:0.6", VERL_USE_EXTERNAL_PLUGINS="pv_cpu"
    )
    assert done.returncode != 0
    assert "Invalid loss_agg_mode: balanced:0.6" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_misspelt_mode_stops_the_run_at_start_with_the_nearest_name(tmp_path):
    done = main_ppo(tmp_path, "actor_rollout_ref.actor.loss_agg_mode=balancd")
    assert done.returncode != 0
    assert "Did you mean balanced?" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()
