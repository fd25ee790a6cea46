"""Prepare the lab, run verl on it, show it, and report what changed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from pv_rl.errors import SetupError
from pv_rl.quickstart.curves import Point, follow
from pv_rl.quickstart.display import Display, before_and_after
from pv_rl.quickstart.figure import draw
from pv_rl.quickstart.process import interruptible, process_tree
from pv_rl.quickstart.settings import CONFIG_MODULE, CONFIG_NAME, Settings

__all__ = ["run_quickstart"]

TRAIN_ROWS, TEST_ROWS = 2048, 256
TEST_SEED = 1_000_003
"""The held-out rows are the same whatever the seed of the run, so that runs can be compared."""


def run_quickstart(settings: Settings, console: Console) -> list[Point]:
    """Train the lab verifier and report.

    Returns:
        The points of the run, the first before training.

    Raises:
        SetupError: packages are missing, the folder is in use, or verl failed (the log's end is in the text).
        LossModeError: nobody knows the mode.
        KeyboardInterrupt: as usual, with every process of the run gone.
    """
    _check_mode(settings.mode)
    out = settings.out.resolve()
    _make_folder(out)
    started = time.monotonic()

    _write_data(out / "data", settings.seed)
    log, metrics = out / "verl.log", out / "metrics.jsonl"
    console.print(f"verl's own log: {log}")
    # Ray's sockets have short names, so its folder may not lie deep.
    ray_folder = Path(tempfile.mkdtemp(prefix="pvrl-", dir="/tmp" if os.path.isdir("/tmp") else None))
    env = {
        **os.environ,
        "VERL_PLATFORM": "cpu",
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "HF_HUB_OFFLINE": "1",
        "HYDRA_FULL_ERROR": "1",
        "PYTHONWARNINGS": "ignore",
    }
    command = _command(settings, out, ray_folder)
    (out / "command.json").write_text(json.dumps(command, indent=1))
    try:
        with (
            interruptible(),
            process_tree(command, env=env, cwd=out, log=log) as child,
            Display(console, settings.steps) as display,
        ):
            for point in follow(metrics):
                if point is not None:
                    display.add(point)
                elif child.poll() is not None:
                    break
                else:
                    time.sleep(0.2)
    finally:
        shutil.rmtree(ray_folder, ignore_errors=True)

    points = display.points
    if child.returncode != 0 or not points or points[-1].step < settings.steps:
        raise SetupError(
            f"verl ended with exit code {child.returncode}; see {log}. It says:\n{_last_error(log)}"
        )
    _report(points, settings, out, console, time.monotonic() - started)
    return points


def _check_mode(mode: str) -> None:
    from pv_rl.losses import resolve_mode
    from pv_rl.plugins import VERL_MODES

    if mode not in VERL_MODES:
        resolve_mode(mode)


def _make_folder(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SetupError(f"--out {out} is there already and not empty; name another folder or remove it")
    out.mkdir(parents=True, exist_ok=True)


def _write_data(folder: Path, seed: int) -> None:
    from pv_rl.lab.dataset import make_rows, write_dataset

    train = make_rows(split="train", count=TRAIN_ROWS, seed=seed, difficulty=2, p_true=0.6)
    test = make_rows(split="test", count=TEST_ROWS, seed=TEST_SEED, difficulty=2, p_true=0.5)
    write_dataset(train, folder / "train.parquet")
    write_dataset(test, folder / "test.parquet")


def _command(settings: Settings, out: Path, ray_folder: Path) -> list[str]:
    """verl's own command line: anybody can copy it from command.json and run it."""
    from pv_rl.lab import MODEL_DIR

    return [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", f"pkg://{CONFIG_MODULE}", "--config-name", CONFIG_NAME),
        "+cluster=cpu",
        f"actor_rollout_ref.actor.loss_agg_mode={settings.mode}",
        f"actor_rollout_ref.model.path={MODEL_DIR}",
        f"actor_rollout_ref.rollout.seed={settings.seed}",
        f"actor_rollout_ref.actor.data_loader_seed={settings.seed}",
        f"data.train_files={out / 'data' / 'train.parquet'}",
        f"data.val_files={out / 'data' / 'test.parquet'}",
        f"data.seed={settings.seed}",
        f"trainer.total_training_steps={settings.steps}",
        f"trainer.default_local_dir={out / 'checkpoints'}",
        f"hydra.run.dir={out / 'hydra'}",
        f"+ray_kwargs.ray_init._temp_dir={ray_folder}",
    ]


def _last_error(log: Path, lines: int = 12) -> str:
    text = log.read_text(errors="replace").splitlines()
    errors = [i for i, line in enumerate(text) if "Error" in line and "wandb" not in line]
    end = errors[-1] + 1 if errors else len(text)
    return "\n".join(text[max(0, end - lines) : end])


def _report(points: list[Point], settings: Settings, out: Path, console: Console, seconds: float) -> None:
    console.print(before_and_after(points, settings.mode))
    draw(points, settings.mode, out / "curves.png")
    record = {
        "settings": asdict(settings) | {"out": str(out)},
        "seconds": round(seconds, 1),
        "points": [asdict(point) | {"balanced": point.balanced} for point in points],
    }
    (out / "result.json").write_text(json.dumps(record, indent=1))
    console.print(f"{seconds:.0f} s. Curves: {out / 'curves.png'}   Numbers: {out / 'result.json'}")
