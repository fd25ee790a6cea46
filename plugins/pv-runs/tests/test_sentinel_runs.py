"""The sentinel in the real trainer: back to a checkpoint, on with its own memory, and a stop."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from trainer import main_ppo, read_metrics, train

pytestmark = pytest.mark.slow
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")


def weights(checkpoint: Path) -> list[bytes]:
    """The tensors of an actor, as the bytes that torch has saved."""
    (file,) = checkpoint.glob("actor/model_*.pt")
    with zipfile.ZipFile(file) as saved:
        return [saved.read(name) for name in sorted(saved.namelist()) if "/data/" in name]


def events(folder: Path) -> list[tuple[str, int]]:
    lines = (folder / "checkpoints" / "sentinel.jsonl").read_text().splitlines()
    return [(line["event"], line["step"]) for line in map(json.loads, lines)]


def test_a_run_goes_back_to_the_good_checkpoint_and_on_and_is_stopped_after_a_resume(tmp_path):
    common = [
        "actor_rollout_ref.actor.loss_agg_mode=balanced",
        f"trainer.default_local_dir={tmp_path}/checkpoints",
        "trainer.save_freq=1",
        "+sentinel.agree=1",
        "+sentinel.within=1",
    ]
    # Any accepting response is longer than a token: an alarm at the first step that is watched.
    train(
        tmp_path,
        *common,
        "trainer.total_training_steps=5",
        "trainer.max_actor_ckpt_to_keep=null",
        "+sentinel.action=rollback",
        "+sentinel.from_step=3",
        "+sentinel.watch.limits.length_accepting=[null,1]",
    )
    # Step 4 is the one that is thrown away and not looked at; step 5 passes the limit anew.
    assert events(tmp_path) == [("alarm", 3), ("rollback", 4), ("alarm", 5)]
    metrics = read_metrics(tmp_path)
    assert [metrics[step].get("pv_rl/sentinel/alarms") for step in (2, 3, 4, 5)] == [None, 1, None, 1]
    assert metrics[4]["pv_rl/sentinel/rolled_back_to"] == 2
    assert [metrics[step]["actor/lr"] for step in (1, 4, 5)] == pytest.approx([2e-4, 2e-4, 1e-4])
    saved = {step: weights(tmp_path / "checkpoints" / f"global_step_{step}") for step in (2, 3, 4, 5)}
    assert saved[4] == saved[2] != saved[3]
    assert saved[5] != saved[2]

    # It goes on with the lower rate and remembers that it has gone back: the next time it stops.
    (tmp_path / "metrics.jsonl").rename(tmp_path / "first.jsonl")
    done = main_ppo(
        tmp_path,
        *common,
        "trainer.total_training_steps=9",
        "trainer.max_actor_ckpt_to_keep=1",
        "+sentinel.action=rollback",
        "+sentinel.watch.limits.cut_off=[0.5,null]",
    )
    assert done.returncode != 0
    assert "the sentinel stopped the run" in done.stdout + done.stderr
    assert events(tmp_path)[3:] == [("alarm", 6), ("stop", 7)]
    metrics = read_metrics(tmp_path)
    assert sorted(metrics) == [6, 7]
    assert metrics[6]["actor/lr"] == pytest.approx(1e-4)
    # Saved by the sentinel and due by save_freq: once, or verl would remove it. And the one before stays.
    assert weights(tmp_path / "checkpoints" / "global_step_7")
    assert weights(tmp_path / "checkpoints" / "global_step_6")


@pytest.mark.paths
def test_a_sentinel_that_cannot_be_is_refused_before_anything_starts(tmp_path):
    done = main_ppo(tmp_path, "+sentinel.action=rolback")
    assert done.returncode != 0
    assert "Did you mean rollback" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()
