"""Measurement of the whole trainer: the metrics of each step of `pv-rl train` beside the plan of the same config."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibration.cases import Group
from calibration.models import write_model, write_prompts
from calibration.plans import GRAPHS, ONE_GPU, RANDOM_WEIGHTS, ROLLOUT, case_plan
from calibration.rows import Row, append

from pv_runs.recipes import compose

COMMAND = (sys.executable, "-m", "pv_rl.cli", "train")
TIMES = {
    "old log-probs": ("timing_s/old_log_prob",),
    "reference log-probs": ("timing_s/ref",),
    "update": ("timing_s/update_actor",),
    "generation": ("timing_s/gen",),
    "sync of the weights": ("timing_s/update_weights",),
    "step": ("timing_s/step",),
}
"""The plan's parts and verl's names of them."""
MEMORY = {
    "memory: update, allocated": "perf/max_memory_allocated_gb",
    "memory: update, reserved": "perf/max_memory_reserved_gb",
}


def steps_in(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Trained steps of all attempts, by the metrics files; a line that is being written is left out."""
    found = []
    for path in sorted(folder.glob("metrics*.jsonl"), key=lambda one: one.stat().st_mtime):
        for line in path.read_text().splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "timing_s/step" in one["data"]:
                found.append((one["step"], one["data"]))
    return found


def run(
    arguments: Sequence[str], folder: Path, log: Path, *, stop_after: int | None, seconds: float
) -> float | None:
    """Start or resume a run and wait.

    Args:
        arguments: of `pv-rl train`.
        folder: of the run.
        log: gets what the command prints.
        stop_after: the run is asked to stop once so many steps are in its metrics; it ends after the next.
        seconds: the run is ended after so many.

    Returns:
        Seconds until the first step's line came; None: no step did.
    """
    begin, known = time.perf_counter(), len(steps_in(folder)) if folder.exists() else 0
    first: float | None = None
    asked = False
    here = str(Path(__file__).resolve().parents[1])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    with log.open("a") as stream:
        child = subprocess.Popen([*COMMAND, *arguments], env=env, stdout=stream, stderr=subprocess.STDOUT)
        while child.poll() is None:
            time.sleep(0.5)
            steps = steps_in(folder) if folder.exists() else []
            if first is None and len(steps) > known:
                first = time.perf_counter() - begin
            if len(steps) > known:
                known = len(steps)
                took = {
                    name: round(value, 1)
                    for name, value in steps[-1][1].items()
                    if name.startswith("timing_s/")
                }
                print(f"[{time.strftime('%H:%M:%S')}] step {steps[-1][0]}: {took}", flush=True)
            if stop_after is not None and not asked and known >= stop_after:
                child.send_signal(signal.SIGTERM)
                asked = True
            if time.perf_counter() - begin > seconds:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(5)
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGTERM)
                    child.wait()
                break
    print(
        f"[{time.strftime('%H:%M:%S')}] exit code {child.returncode} after {time.perf_counter() - begin:.0f} s",
        flush=True,
    )
    return first


def compare(
    name: str, shape: str, held_out: bool, config_run: str, overrides: list[str], folder: Path, out: Path
) -> None:
    """Append a row for each part and step. The plan gets the lengths that came."""
    for step, data in steps_in(folder):
        mean, longest = data["response_length/mean"], data["response_length/max"]
        lengths = [
            f"++plan.prompt_tokens={data['prompt_length/mean']}",
            f"++plan.response_tokens={mean if longest > mean else mean * 0.9999}",
        ]
        plan = case_plan(compose(config_run, [*overrides, *lengths]))
        times = {one.name: one.seconds for one in plan.time.training}
        times["generation"] = sum(one.seconds for one in plan.time.generation)
        times["sync of the weights"], times["step"] = plan.time.sync.seconds, plan.time.seconds
        rows = []
        common = {"group": name, "shape": shape, "case": f"step {step}", "call": step, "held_out": held_out}
        detail = {"mean": mean, "longest": longest}
        for part, keys in TIMES.items():
            measured = sum(data.get(key, 0.0) for key in keys)
            if measured:
                rows.append(
                    Row(**common, part=part, predicted=times.get(part), measured=measured, detail=detail)
                )
        named = sum(data.get(key, 0.0) for keys in TIMES.values() for key in keys) - data["timing_s/step"]
        other = data["timing_s/step"] - named - data.get("timing_s/save_checkpoint", 0.0)
        rows.append(Row(**common, part="everything else", predicted=plan.time.other.seconds, measured=other))
        for part in ("save_checkpoint", "adv", "reward"):
            if f"timing_s/{part}" in data:
                rows.append(Row(**common, part=part, predicted=None, measured=data[f"timing_s/{part}"]))
        update = next(phase for phase in plan.memory.phases if phase.name == "update")
        for part, key in MEMORY.items():
            if key in data:
                rows.append(Row(**common, part=part, predicted=update.gib, measured=data[key]))
        append(out, rows)


def measure(group: Group, out: Path, cpu: bool, until: float) -> None:
    """Three steps of one case, whose responses all have the length of the case: nothing ends them before."""
    case = group.cases[0]
    pairs = case.lengths()
    place = out.parent.resolve()
    model = write_model(place / "models" / group.shape, group.shape)
    data = write_prompts(place / "data" / group.name.replace(" ", "-"), [pair[0] for pair in pairs] * 8)
    longest = case.prompt * 3 // 2
    common = [
        *("judge=rules", RANDOM_WEIGHTS, f"model_path={model}", f"data_dir={data}"),
        f"data.train_batch_size={case.rows // 8}",
        f"data.max_prompt_length={longest}",
        f"data.max_response_length={case.response}",
        f"actor_rollout_ref.actor.ppo_max_token_len_per_gpu={case.micro}",
        f"{ROLLOUT}.max_model_len={longest + case.response}",
        f"{ROLLOUT}.ignore_eos=true",
        *("trainer.total_training_steps=3", "trainer.val_before_train=false", "trainer.test_freq=-1"),
        "trainer.save_freq=-1",
        *group.overrides,
    ]
    folder = place / "runs" / group.name.replace(" ", "-")
    machine = ["cluster=cpu", *ONE_GPU[-1:]] if cpu else [*ONE_GPU, *GRAPHS]
    log = place / f"{group.name.replace(' ', '-')}-train.log"
    arguments = ["run=8b", *machine, *common, f"hydra.run.dir={folder}"]
    first = run(arguments, folder, log, stop_after=None, seconds=until - time.time())
    if first is None:
        print(log.read_text(errors="replace")[-6000:], flush=True)
        raise SystemExit(1)
    begun = {"group": group.name, "shape": group.shape, "case": "-", "call": 1, "held_out": group.held_out}
    append(out, [Row(**begun, part="start and first step", predicted=None, measured=first)])
    lengths = "++plan.length_sigma=0.001"
    compare(group.name, group.shape, group.held_out, "8b", [*ONE_GPU, *common, lengths], folder, out)
