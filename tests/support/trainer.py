"""Run one of verl's real trainers on a CPU, and hold the worker's weights to the responses it trained on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from metric_catalogue import describe

from pv_rl.losses import resolve_mode, response_weights
from pv_rl.verdict import parse_verdict
from pv_runs.weight_shares import diagnose

MAX_RESPONSE = 128
PROMPTS, RESPONSES = 4, 4
EXTREMES = ("token_weight_min", "token_weight_max")


def main_ppo(
    folder: Path, *overrides: str, module: str = "verl.trainer.main_ppo", record: bool = False, **env: str
) -> subprocess.CompletedProcess[str]:
    """Two steps of the lab's run in a process of its own, 4 prompts x 4 responses each.

    With `record`, the rows that each update is given are written down by `recorder`, for `check_weights`.
    """
    from pv_lab import MODEL_DIR
    from pv_lab.dataset import make_rows, write_dataset

    for split in ("train", "test"):
        rows = make_rows(split=split, count=16, seed=5, difficulty=2, p_true=0.5)
        write_dataset(rows, folder / f"{split}.parquet")
    command = [
        *(sys.executable, "-m", module),
        *("--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab", "cluster=cpu"),
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
    if record:
        path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        settings |= {
            "VERL_USE_EXTERNAL_MODULES": "recorder",
            "PYTHONPATH": os.pathsep.join(path),
            "PV_RL_TEST_RECORD": f"{folder}/record.jsonl",
        }
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **settings, **env},
    )


def train(folder: Path, *overrides: str, **options: Any) -> None:
    """`main_ppo`, which has to succeed."""
    done = main_ppo(folder, *overrides, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def read_metrics(folder: Path) -> dict[int, dict]:
    """verl's metrics by step. Every name of ours is in the catalogue, but the number of the loss plugin's mode."""
    metrics = {line["step"]: line["data"] for line in _read_lines(folder / "metrics.jsonl")}
    ours = {name for data in metrics.values() for name in data if "pv_rl/" in name}
    assert {name for name in ours if describe(name) is None} <= {"pv_rl/power"}
    return metrics


def check_weights(
    folder: Path,
    spec: str,
    *,
    mini_batches: int = 1,
    part: str = "actor",
    prompts: int = PROMPTS,
    responses: int = RESPONSES,
) -> None:
    """The extremes of the weights that the worker used are those of the formula on the responses of the step."""
    metrics = read_metrics(folder)
    assert {1, 2} <= set(metrics)
    recorded = folder / "record.jsonl"
    for step in (1, 2):
        advantages = None
        if recorded.exists():
            row = _read_lines(recorded)[step - 1]
            lengths, groups, advantages = row["lengths"], row["groups"], row["advantages"]
        else:
            lengths, groups = _dumped(folder, step)
            assert sum(lengths) / len(lengths) == pytest.approx(metrics[step]["response_length/mean"])
        assert len(lengths) == prompts * responses
        assert len(set(groups)) == prompts

        weights = response_weights(spec, lengths, groups, advantages) * mini_batches
        lightest, heaviest = weights[weights > 0].min().item(), weights.max().item()
        used = {name: metrics[step][f"{part}/pv_rl/{name}"] for name in ("update_mass", *EXTREMES)}
        assert used["update_mass"] == pytest.approx(1.0, rel=1e-5)
        assert [used[name] for name in EXTREMES] == pytest.approx([lightest, heaviest], rel=1e-5)
        assert heaviest > 1.05 * lightest  # lengths differ, so another weighting would show


def check_step_metrics(folder: Path, spec: str) -> None:
    """What verl logs under `pv_rl/` is what the responses that it says it trained on give."""
    for step in (1, 2):
        rollouts = _read_lines(folder / "rollouts" / f"{step}.jsonl")
        lengths, groups = _dumped(folder, step)
        baseline = {group: mean(r["score"] for r in rollouts if r["input"] == group) for group in set(groups)}
        advantages = [row["score"] - baseline[row["input"]] for row in rollouts]
        verdicts = [parse_verdict(row["output"]) for row in rollouts]
        expected = diagnose(resolve_mode(spec), lengths, groups, advantages, verdicts)
        logged = read_metrics(folder)[step]
        assert {name: logged[f"pv_rl/{name}"] for name in expected} == pytest.approx(
            expected, rel=1e-5, abs=1e-9
        )
        assert logged["pv_rl/weight_share/verdict_true"] > 0


def _dumped(folder: Path, step: int) -> tuple[list[int], list[str]]:
    """Length and prompt of each response that verl says it trained on."""
    rollouts = _read_lines(folder / "rollouts" / f"{step}.jsonl")
    # One word is one token; the end-of-text mark counts and is not shown, unless the response was cut off.
    words = [len(row["output"].split()) for row in rollouts]
    return [n + 1 if n < MAX_RESPONSE else n for n in words], [row["input"] for row in rollouts]


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
