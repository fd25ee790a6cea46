"""One run of verl's trainer on the CPU for each mode and reward, with the judge's latency changed on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from judge_server import JudgeServer, Latency, Script

from pv_lab import MODEL_DIR
from pv_lab.dataset import make_rows, write_dataset

HERE = Path(__file__).resolve().parent
MODES = {
    "sync": (),
    "colocate_async": ("trainer.v1.trainer_mode=colocate_async",),
    "separate_async": (  # rollout in a process of its own; the weights go to it after every step
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.parameter_sync_step=1",
        "actor_rollout_ref.rollout.checkpoint_engine.backend=pv_cpu_file",
        "actor_rollout_ref.rollout.nnodes=1",
        "actor_rollout_ref.rollout.n_gpus_per_node=1",
    ),
}
REWARD = "reward.custom_reward_function"
WARM_UP = 2
"""Steps that are left out after a change of the latency: two batches are on their way in the async modes."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What every run has in common."""

    prompts: int
    responses: int
    steps: int
    sigma: float
    end: float
    token_s: float
    train_s: float
    poll_s: float
    warmup_batches: float
    """`num_warmup_batches` of the asynchronous modes: how many more are on their way than are trained on."""


@dataclass
class Case:
    """A mode, a reward and a latency, step by step."""

    mode: str
    side: str
    latency: float
    step_s: list[float] = field(default_factory=list)
    gen_s: list[float] = field(default_factory=list)
    """How long the trainer waited for the step's rows."""
    exposed_s: list[float] = field(default_factory=list)
    """pv_rl/judge/exposed_wait_s; empty where there is none."""
    requests: int = 0
    """Of all steps here, and those that were left out."""
    most_in_flight: int = 0

    def add(self, numbers: dict[str, float]) -> None:
        """verl's metrics of a step."""
        self.step_s.append(numbers["timing_s/step"])
        self.gen_s.append(numbers["timing_s/gen"])
        if (exposed := numbers.get("pv_rl/judge/exposed_wait_s/sum")) is not None:
            self.exposed_s.append(exposed)


def reward(side: str, url: str, folder: Path) -> list[str]:
    """Overrides. `rules`: nobody is asked; `ours:C`: by pv-rl; `limited:C`, `limited:CxW`: by verl, in W workers."""
    kind, _, limit = side.partition(":")
    if kind == "rules":
        return ["reward=verdict_fluency", f"{REWARD}.reward_kwargs.ledger={folder}/ledger"]
    if kind == "ours":
        judge = f"{{endpoints:[{{url:'{url}',model:judge}}],limits:{{concurrency:{limit}}}}}"
        return [*reward("rules", url, folder), f"+{REWARD}.reward_kwargs.judge={judge}"]
    concurrency, _, workers = limit.partition("x")
    return [
        "reward.reward_manager.name=rate_limited",
        f"+reward.max_concurrent={concurrency}",
        f"reward.num_workers={workers or 1}",
        f"{REWARD}.path={HERE}/plain_judge.py",
        f"{REWARD}.name=compute_score",
        f"+{REWARD}.reward_kwargs.url='{url}'",
    ]


def concurrency(side: str) -> float:
    """Questions that may be asked at the same time."""
    kind, _, limit = side.partition(":")
    first, _, workers = limit.partition("x")
    return int(first) * int(workers or 1) if kind != "rules" else float("inf")


def run(mode: str, side: str, latencies: list[float], load: Load) -> list[Case]:
    """The cases of one run."""
    cases = [Case(mode, side, latency) for latency in latencies]
    script = Script(latency=Latency(median_s=latencies[0], sigma=load.sigma))
    with tempfile.TemporaryDirectory() as name, JudgeServer(script) as server:
        folder, phase = Path(name), WARM_UP + load.steps
        process = start(folder, MODES[mode], reward(side, server.url, folder), phase * len(cases), load)
        try:
            follow(process, folder, server, cases, phase)
        finally:
            process.terminate()
            process.wait()
        if process.returncode != 0:
            raise RuntimeError(f"{mode}, {side} failed:\n{(folder / 'log').read_text()[-6000:]}")
        lines = read_lines(folder / "metrics.jsonl")
        for place, case in enumerate(cases):
            for line in lines[place * phase + WARM_UP : (place + 1) * phase]:
                case.add(line["data"])
        return cases


def follow(
    process: subprocess.Popen[bytes], folder: Path, server: JudgeServer, cases: list[Case], phase: int
) -> None:
    """Until the run ends: change the latency when a case has had its steps, and count the requests of each."""
    metrics, seen = folder / "metrics.jsonl", 0
    while process.poll() is None:
        time.sleep(0.1)
        steps = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
        case = cases[min(steps // phase, len(cases) - 1)]
        if server.script.latency.median_s != case.latency:
            server.script = replace(
                server.script, latency=replace(server.script.latency, median_s=case.latency)
            )
        chats = server.chats()[seen:]
        seen += len(chats)
        case.requests += len(chats)
        case.most_in_flight = max([case.most_in_flight, *(chat["in_flight"] for chat in chats)])


def start(
    folder: Path, mode: tuple[str, ...], rewards: list[str], steps: int, load: Load
) -> subprocess.Popen[bytes]:
    for split, count in (("train", max(512, load.prompts)), ("test", load.prompts)):
        rows = make_rows(split=split, count=count, seed=5, difficulty=2, p_true=0.5)
        write_dataset(rows, folder / f"{split}.parquet")
    command = [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", "pkg://pv_rl.hydra_configs.runs", "--config-name", "lab", "cluster=cpu"),
        f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/test.parquet",
        f"data.train_batch_size={load.prompts}",
        f"actor_rollout_ref.model.path={MODEL_DIR}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={load.prompts}",
        "actor_rollout_ref.actor.optim.lr=0",  # every side has responses of the same kind
        "actor_rollout_ref.actor.use_kl_loss=False",  # less to compute: training has its bound anyway
        f"actor_rollout_ref.rollout.n={load.responses}",
        f"trainer.total_training_steps={steps}",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        f"trainer.default_local_dir={folder}/checkpoints",
        f"hydra.run.dir={folder}/hydra",
        *(f"trainer.v1.{one}.num_warmup_batches={load.warmup_batches}" for one in MODES if one != "sync"),
        *mode,
        *rewards,
    ]
    settings = {
        "VERL_PLATFORM": "cpu",
        "HF_HUB_OFFLINE": "1",
        "VERL_FILE_LOGGER_PATH": f"{folder}/metrics.jsonl",
        "VERL_USE_EXTERNAL_MODULES": "paced",
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PACED_TOKEN_S": str(load.token_s),
        "PACED_TRAIN_S": str(load.train_s),
        "PACED_POLL_S": str(load.poll_s),
        "PACED_END": str(load.end),
    }
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT
        )


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
