"""A verl of another version, and one with a changed seam: a copy whose files are links, but for those that differ."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from fork_server import run_fresh

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

# What the driver of each kind of run does first.
DRIVERS = """
from omegaconf import OmegaConf
import verl
from pv_rl.verl_adapter.start import check_config
ours = {"custom_reward_function": {"path": "pkg://pv_rl.rewards.named", "name": "verdict"}}
for name, mode, more in (
    ("stock", "token-mean", {}),
    ("batch", "balanced@batch", {}),
    ("prompt", "balanced", {}),
    ("legacy", "balanced", {"trainer": {"use_v1": False}}),
    ("distillation", "balanced@batch", {"distillation": {"enabled": True}}),
    ("reward", "token-mean", {"reward": ours}),
    ("sentinel", "token-mean", {"sentinel": {"action": "log"}}),
):
    actor_rollout_ref = {"actor": {"loss_agg_mode": mode}, "rollout": {"n": 4}}
    data = {"train_batch_size": 8}
    config = {"actor_rollout_ref": actor_rollout_ref, "data": data, "trainer": {}, "algorithm": {}, **more}
    try:
        check_config(OmegaConf.create(config))
    except RuntimeError as error:
        print(f"{name}: {type(error).__name__} {error}")
    else:
        print(f"{name}: ok")
"""
RUNS = {"stock", "batch", "prompt", "legacy", "distillation", "reward", "sentinel"}
STOCK = DRIVERS.replace(":\n    actor_rollout_ref = {", "[:1]:\n    actor_rollout_ref = {")

TRAINER, LEGACY = "trainer/ppo/v1/trainer_base.py", "trainer/ppo/ray_trainer.py"
CORE, REWARDS = "trainer/ppo/core_algos.py", "experimental/reward_loop/reward_loop.py"
AGG_LOSS = '    loss_scale_factor: Optional[int] = None,\n):\n    """\n    Aggregate'


def copy_of_verl(folder: Path, version: str, name: str = "", old: str = "", new: str = "") -> Path:
    """The installed verl in `folder`, with another version, and the text `old` of one file replaced."""
    spec = importlib.util.find_spec("verl")
    source = Path(spec.submodule_search_locations[0])
    shutil.copytree(source, folder / "verl", copy_function=os.symlink)
    changed = {"version/version": version}
    if name:
        before = (source / name).read_text()
        assert before.count(old) == 1
        changed[name] = before.replace(old, new)
    for file, text in changed.items():
        (folder / "verl" / file).unlink()
        (folder / "verl" / file).write_text(text)
    return folder


def test_a_verl_of_another_version_is_served_with_one_warning_and_a_stock_run_gets_none(tmp_path):
    folder = copy_of_verl(tmp_path, "0.10.0.dev")
    done = run_fresh(DRIVERS, path=folder)
    assert set(done.stdout.splitlines()) == {f"{name}: ok" for name in RUNS}, done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if "pv-rl" in line]
    place = f"verl 0.10.0.dev in {folder}/verl"
    assert f"pv-rl was not tested with {place} (tested: 0.9.0, 0.9.1). All seams hold." in warning
    stock = run_fresh(STOCK, path=folder)
    assert (stock.stdout, "pv-rl" in stock.stderr) == ("stock: ok\n", False)


@pytest.mark.parametrize(
    ("name", "old", "new", "refused", "seam"),
    [
        (
            *(TRAINER, "def _compute_advantage(self, batch:", "def _compute_advantage(self, meta:"),
            {"prompt", "reward", "sentinel"},
            "PPOTrainer._compute_advantage(self, meta, metrics) does not begin with (self, batch, metrics)",
        ),
        (
            *(LEGACY, "def compute_advantage(\n    data:", "def compute_advantage(\n    rows:"),
            {"legacy"},
            "verl.trainer.ppo.ray_trainer.compute_advantage(rows, ",
        ),
        (
            *(REWARDS, "    async def compute_score(", "    async def score("),
            {"reward"},
            "verl.experimental.reward_loop.reward_loop has no RewardLoopWorker.compute_score",
        ),
        (
            *("utils/tracking.py", "def log(self, data, step, ", "def log(self, step, data, "),
            {"sentinel"},
            "verl.utils.tracking.Tracking.log(self, step, data, backend) does not begin with (self, data, step)",
        ),
        (
            *(CORE, ", loss_mask) / batch_num_tokens * dp_size", ", loss_mask) / batch_num_tokens"),
            {"batch", "prompt", "legacy", "distillation"},
            "agg_loss gives 0.5 for an example in mode token-mean, expected 1",
        ),
        (
            *(CORE, AGG_LOSS, AGG_LOSS.replace("):", "    scale: float = 1.0,\n):")),
            {"batch", "prompt", "legacy", "distillation"},
            "global_batch_size, loss_scale_factor, scale) is not (loss_mat, loss_mask, loss_agg_mode, dp_size, ",
        ),
        (
            *(TRAINER, "def _val_metrics_update(", "def _val_metrics("),
            set(),
            "verl.trainer.ppo.v1.trainer_base has no PPOTrainer._val_metrics_update",
        ),
    ],
)
def test_a_changed_seam_is_refused_by_name_in_the_runs_that_need_it(tmp_path, name, old, new, refused, seam):
    done = run_fresh(DRIVERS, path=copy_of_verl(tmp_path, "0.10.0.dev", name, old, new))
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert set(lines) == RUNS, done.stderr
    assert {run for run, line in lines.items() if line != "ok"} == refused
    for run in refused:
        assert seam in lines[run]
        assert "Install verl 0.9.0 or 0.9.1, or a pv-rl that supports this verl" in lines[run]
    (warning,) = [line for line in done.stderr.splitlines() if "Parts that need these seams are off" in line]
    assert seam in warning
