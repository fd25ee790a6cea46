"""Run the real `verl.trainer.main_ppo` on a CPU, and hold the worker's weights to the responses it trained on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pv_rl.losses import response_weights

MAX_RESPONSE = 128
PROMPTS, RESPONSES = 4, 4


def main_ppo(folder: Path, *overrides: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Two steps of the lab's run in a process of its own, 4 prompts x 4 responses each."""
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
        f"data.train_batch_size={PROMPTS}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
        f"actor_rollout_ref.rollout.n={RESPONSES}",
        "trainer.total_training_steps=2",
        "trainer.val_before_train=False",
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


def read_metrics(folder: Path) -> dict[int, dict]:
    """verl's metrics by step."""
    return {line["step"]: line["data"] for line in _read_lines(folder / "metrics.jsonl")}


def check_weights(folder: Path, spec: str, *, mini_batches: int = 1) -> None:
    """The extremes of the weights that the worker used are those of the formula on the responses of the step."""
    metrics = read_metrics(folder)
    assert {1, 2} <= set(metrics)
    for step in (1, 2):
        rollouts = _read_lines(folder / "rollouts" / f"{step}.jsonl")
        # One word is one token; the end-of-text mark counts and is not shown, unless the response was cut off.
        words = [len(row["output"].split()) for row in rollouts]
        lengths = [n + 1 if n < MAX_RESPONSE else n for n in words]
        assert len(lengths) == PROMPTS * RESPONSES
        assert sum(lengths) / len(lengths) == pytest.approx(metrics[step]["response_length/mean"])
        groups = [row["input"] for row in rollouts]
        assert len(set(groups)) == PROMPTS

        weights = response_weights(spec, lengths, groups) * mini_batches
        assert metrics[step]["actor/pv_rl/update_mass"] == pytest.approx(1.0, rel=1e-5)
        assert metrics[step]["actor/pv_rl/token_weight_max"] == pytest.approx(weights.max().item(), rel=1e-5)
        assert metrics[step]["actor/pv_rl/token_weight_min"] == pytest.approx(weights.min().item(), rel=1e-5)
        assert weights.max() > 1.5 * weights.min()  # lengths differ, so another weighting would show


def check_rewards(folder: Path) -> None:
    """Each response's reward is whether its last word is its label."""
    for step, metrics in read_metrics(folder).items():
        if step:
            rollouts = _read_lines(folder / "rollouts" / f"{step}.jsonl")
            for row in rollouts:
                assert row["score"] == float(row["output"].split()[-1] == row["gts"])
            mean = sum(row["score"] for row in rollouts) / len(rollouts)
            assert metrics["critic/score/mean"] == pytest.approx(mean)


def _read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
