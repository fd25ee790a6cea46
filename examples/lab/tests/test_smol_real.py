"""`run=sft_small` with verl's own SFT trainer on the lab's model, and the Ray cluster of a slot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pv_lab import MODEL_DIR
from pv_lab.dataset import write_dataset
from pv_lab.smol.data import conversations
from pv_lab.smol.ray_slot import ENVIRONMENT, ray_slot

ASK = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(ray.get_runtime_context().get_job_id(), ray.cluster_resources()["GPU"])
"""


@pytest.mark.slow
def test_verls_sft_trainer_learns_a_conversation_and_saves_a_model_to_start_from(tmp_path):
    write_dataset(list(conversations("exact", 8)), tmp_path / "data" / "train.parquet")
    command = [
        *(sys.executable, "-W", "ignore", "-m", "pv_rl.cli", "train", "run=sft_small", "cluster=cpu"),
        *(f"data_dir={tmp_path / 'data'}", f"model_path={MODEL_DIR}", f"hydra.run.dir={tmp_path / 'run'}"),
        *("data.train_batch_size=4", "data.num_workers=0", "trainer.total_training_steps=2"),
        "checkpoint.save_contents=[hf_model]",
        "checkpoint.load_contents=[]",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    first, second = (json.loads(line)["data"]["train/loss"] for line in lines)
    assert second < first
    saved = tmp_path / "run" / "checkpoints" / "global_step_2" / "huggingface"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in saved.iterdir()}
    assert "step 2 of 2  loss " in done.stdout


@pytest.mark.paths
def test_the_runs_of_two_slots_have_job_ids_of_their_own():
    def first_job(address):
        command = [sys.executable, "-W", "ignore", "-c", ASK, address]
        done = subprocess.run(
            command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    with (
        tempfile.TemporaryDirectory(prefix="pv", dir="/tmp", ignore_cleanup_errors=True) as short,
        ray_slot(0, Path(short, "a"), dict(os.environ), cpus=4) as first,
        ray_slot(2, Path(short, "b"), dict(os.environ), cpus=4) as second,
    ):
        # the cluster's own process was job 1
        assert first_job(first) == ["02000000", "1.0"]
        assert first_job(second) == ["09000000", "1.0"]
