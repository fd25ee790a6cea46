"""Preparation of a run: writes the lab's data and model to the folders that the config names."""

from __future__ import annotations

import shutil
from pathlib import Path

from pv_lab import MODEL_DIR
from pv_lab.dataset import make_rows, write_dataset

__all__ = ["prepare", "write_data"]

TRAIN_ROWS, TEST_ROWS = 2048, 256
DIFFICULTY = 2
TEST_SEED = 1_000_003
"""The held-out rows are the same whatever the seed of the run, so that runs can be compared."""


def prepare(*, data_dir: str, model_dir: str, seed: int) -> None:
    """Write `train.parquet`, `test.parquet` and the model that comes with the lab. What is there already stays."""
    data, model = Path(data_dir), Path(model_dir)
    if not (data / "test.parquet").exists():
        write_data(data, seed)
    if not model.exists():
        unfinished = model.with_name(f".{model.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(MODEL_DIR, unfinished)
        unfinished.rename(model)


def write_data(folder: Path, seed: int) -> None:
    """Difficulty 2; 60 % of the proofs to train on are right, and half of those held out."""
    train = make_rows(split="train", count=TRAIN_ROWS, seed=seed, difficulty=DIFFICULTY, p_true=0.6)
    test = make_rows(split="test", count=TEST_ROWS, seed=TEST_SEED, difficulty=DIFFICULTY, p_true=0.5)
    write_dataset(train, folder / "train.parquet")
    write_dataset(test, folder / "test.parquet")
