"""Is the first step's gradient the same on one data-parallel rank and on several?

Runs verl's own trainer once for each number of ranks, for one step, on the same rows, and compares
`actor/grad_norm`. Sampling would differ from run to run, so the rollouts are replayed (`replay/`); everything else
is the lab run.

    python benchmarks/ranks.py --cpu                      # one and two ranks, float32
    python benchmarks/ranks.py --ranks 1 2 --dtype bf16   # with GPUs; --dtype fp32 for float32
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pv_lab import MODEL_DIR
from pv_lab.dataset import make_rows, write_dataset

REPLAY = Path(__file__).resolve().parent / "replay"
NUMBERS = ("actor/grad_norm", "actor/pg_loss", "actor/entropy_loss", "actor/pv_rl/token_weight_max")
ACTOR = "actor_rollout_ref.actor"


def command(folder: Path, ranks: int, spec: str, cpu: bool, dtype: str) -> list[str]:
    """One step of 8 prompts x 8 responses, in micro-batches of about 1,000 tokens."""
    return [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab"),
        *(["cluster=cpu"] if cpu else []),
        *(f"data.{kind}_files={folder}/rows.parquet" for kind in ("train", "val")),
        "data.shuffle=False",
        "data.train_batch_size=8",
        f"actor_rollout_ref.model.path={MODEL_DIR}",
        f"{ACTOR}.loss_agg_mode={spec}",
        f"{ACTOR}.ppo_mini_batch_size=8",
        f"{ACTOR}.ppo_max_token_len_per_gpu=1024",
        f"{ACTOR}.entropy_coeff=0.01",
        f"{ACTOR}.fsdp_config.model_dtype=fp32",
        *([] if cpu else [f"+{ACTOR}.fsdp_config.mixed_precision.param_dtype={dtype}"]),
        "actor_rollout_ref.rollout.n=8",
        "actor_rollout_ref.rollout.calculate_log_probs=False",
        "actor_rollout_ref.rollout.enforce_eager=True",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "actor_rollout_ref.rollout.agent.default_agent_loop=replay",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={REPLAY}/agent_loop.yaml",
        f"trainer.n_gpus_per_node={ranks}",
        "trainer.total_training_steps=1",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        f"hydra.run.dir={folder}/hydra",
    ]


def first_step(ranks: int, spec: str, cpu: bool, dtype: str) -> dict[str, float]:
    """verl's metrics of the first step on so many ranks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(
            make_rows(split="train", count=8, seed=3, difficulty=2, p_true=0.5), folder / "rows.parquet"
        )
        paths = [str(REPLAY), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "VERL_FILE_LOGGER_PATH": f"{folder}/metrics.jsonl",
            "HF_HUB_OFFLINE": "1",
            **({"VERL_PLATFORM": "cpu"} if cpu else {"VLLM_USE_FLASHINFER_SAMPLER": "0"}),
        }
        run = command(folder, ranks, spec, cpu, dtype)
        done = subprocess.run(run, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"the run on {ranks} ranks failed:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return next(line["data"] for line in lines if line["step"] == 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--mode", default="balanced", help="loss_agg_mode")
    parser.add_argument("--cpu", action="store_true", help="on pv-cpu's platform, in float32")
    parser.add_argument(
        "--dtype", choices=["bf16", "fp32"], default="bf16", help="parameters while they compute"
    )
    parser.add_argument(
        "--tolerance", type=float, help="fail above this relative difference of actor/grad_norm"
    )
    asked = parser.parse_args()
    dtype = "fp32" if asked.cpu else asked.dtype
    by_ranks = {n: first_step(n, asked.mode, asked.cpu, dtype) for n in asked.ranks}
    for n, metrics in by_ranks.items():
        print(n, "ranks", dtype, {name: metrics[name] for name in NUMBERS}, flush=True)
    norms = [metrics["actor/grad_norm"] for metrics in by_ranks.values()]
    difference = max(abs(norm / norms[0] - 1) for norm in norms)
    print(f"largest relative difference of actor/grad_norm: {difference:.2e}")
    if not math.isfinite(difference) or (asked.tolerance is not None and difference > asked.tolerance):
        sys.exit(1)


if __name__ == "__main__":
    main()
