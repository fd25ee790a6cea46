"""The 8B recipe on one GPU of 140 GiB: `run=8b` with random weights, two steps, checkpoint, stop, resume, two more.

The overrides are in `OVERRIDES`, each with its reason; lengths, GSPO, KL, sampling and rewards are the recipe's. 8.2e9
parameters with fp32 gradients and Adam states are 131 GB, which neither the GPU nor 128 GiB of the host can hold:
`model_dtype: bf16` takes half. bf16 loses most of an update of 5e-7, so this shows that the recipe runs, and what it
takes, not that it learns. vLLM serves a fluency judge on the same GPU: `--judge-model`, or 0.1B random weights, whose
answers are all cut at their limit of tokens.

20 minutes. The same command resumes a run that was cut (`--minutes`):

    python benchmarks/recipe_8b.py --out DIR
    python benchmarks/recipe_8b.py --out DIR --cpu      # a rehearsal with a tiny model, without a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from calibration.models import write_model, write_prompts  # noqa: E402
from calibration.plans import BF16, GRAPHS, ONE_GPU, RANDOM_WEIGHTS  # noqa: E402
from calibration.rows import Row, append  # noqa: E402
from calibration.trainer import compare, run, steps_in  # noqa: E402

MEAN_RESPONSE = 778
STEPS = 4
OVERRIDES = (
    "trainer_mode=sync",  # one GPU cannot be divided
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24576",  # a whole row of 24,192 tokens: no sequence parallel
    *BF16,  # Adam's states of 8B
    f"trainer.total_training_steps={STEPS}",
    *("trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=-1"),
)
CHECKPOINT = "actor_rollout_ref.actor.checkpoint.save_contents=[model,extra]"
LEAST_DISK_GB, LEAST_DISK_RATE = 56.0, 0.5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("recipe-8b"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--prompts", type=int, default=2, help="a step, of 8 responses each; the paper has 60"
    )
    parser.add_argument("--judge", choices=["vllm_local", "rules"], default="vllm_local")
    parser.add_argument("--judge-model", type=Path, help="a folder, for example of SmolLM2-135M-Instruct")
    parser.add_argument("--attention", default="sdpa", help="sdpa, or unmasked")
    parser.add_argument("--packed", action="store_true", help="use_remove_padding")
    parser.add_argument("--override", nargs="*", default=[], help="of the run")
    parser.add_argument("--cpu", action="store_true")
    asked = parser.parse_args()
    until = time.time() + 60 * asked.minutes
    out = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(
        "RAY_memory_monitor_refresh_ms", "0"
    )  # MemTotal of a virtual machine may grow with use
    shape, judge = ("tiny", "rules") if asked.cpu else ("8B", asked.judge)
    model = write_model(out / "model", shape, 40 if asked.cpu else MEAN_RESPONSE)
    lengths = random.Random(0)
    prompts = [lengths.randint(20, 60) if asked.cpu else lengths.randint(500, 2500) for _ in range(64)]
    data = write_prompts(out / "data", prompts)
    attention = [
        f"++actor_rollout_ref.model.override_config.attn_implementation={asked.attention}",
        f"actor_rollout_ref.model.use_remove_padding={str(asked.packed).lower()}",
    ]
    tiny = ["data.max_response_length=200", "actor_rollout_ref.rollout.max_model_len=2000"]
    common = [
        *(f"model_path={model}", f"data_dir={data}", RANDOM_WEIGHTS, f"judge={judge}"),
        *(f"data.train_batch_size={asked.prompts}", *OVERRIDES, *attention, *asked.override),
        *([*tiny, "data.max_prompt_length=1800"] if asked.cpu else []),
    ]
    machine = (
        ["cluster=cpu", ONE_GPU[-1]] if asked.cpu else [*ONE_GPU, *GRAPHS, "cluster.host_memory_gib=128"]
    )
    folder, log = out / "run", out / "train.log"
    with judge_server(out, asked.judge_model, judge == "vllm_local"):
        if not (folder / "run.json").exists():
            contents = [] if asked.cpu or disk_suffices(out) else [CHECKPOINT]
            (out / "contents.json").write_text(json.dumps(contents))
            arguments = ["run=8b", *machine, *common, *contents, f"hydra.run.dir={folder}"]
            say(f"pv-rl train {' '.join(arguments)}")
            begin_run(arguments, folder, log, 1, until)
        last = max((step for step, _ in steps_in(folder)), default=0)
        if until - time.time() > (60 if asked.cpu else 240) and last < STEPS:
            say(f"pv-rl train --resume {folder}")
            begin_run(["--resume", str(folder)], folder, log, None, until)
    steps = steps_in(folder)
    say(f"steps in the metrics: {[step for step, _ in steps]}")
    results = out / "recipe_8b.csv"
    results.unlink(missing_ok=True)
    compare("recipe 8b", shape, True, "8b", [*ONE_GPU, *common, "++plan.length_sigma=0.83"], folder, results)
    for path in sorted(out.glob("*.part.csv")):
        append(results, [Row(**json.loads(path.read_text()))])
    keep = ("pv_rl/", "response_length/", "actor/grad_norm", "actor/kl", "perf/", "timing_s/", "critic/score")
    with (out / "steps.json").open("w") as stream:
        json.dump(
            [
                {"step": step} | {k: v for k, v in d.items() if k.startswith(keep) or "update_mass" in k}
                for step, d in steps
            ],
            stream,
            indent=1,
        )


def begin_run(arguments: list[str], folder: Path, log: Path, stop_after: int | None, until: float) -> None:
    """Start or resume; keep what the start and the checkpoint took."""
    resumed = stop_after is None
    begin = time.perf_counter()
    first = run(arguments, folder, log, stop_after=stop_after, seconds=until - time.time() - 10)
    part = "resume, until a step has ended" if resumed else "start, until a step has ended"
    whole = time.perf_counter() - begin
    if first is None:
        say(f"no step: see {log}")
        print(log.read_text(errors="replace")[-3000:], flush=True)
        verl = folder / "verl.log"
        if verl.exists():
            print(verl.read_text(errors="replace")[-9000:], flush=True)
        return
    checkpoints = folder / "checkpoints"
    size = sum(one.stat().st_size for one in checkpoints.rglob("*") if one.is_file()) / 1e9
    detail = {"whole_s": round(whole, 1), "checkpoint_gb": round(size, 2)}
    say(f"{part}: {first:.0f} s; {detail}")
    row = {"group": "recipe 8b", "shape": "8B", "case": "-", "part": part, "call": 1, "held_out": True}
    name = "resume" if resumed else "start"
    row |= {"predicted": None, "measured": first, "detail": detail}
    (folder.parent / f"{name}.part.csv").write_text(json.dumps(row))


def disk_suffices(out: Path) -> bool:
    """Whether 49 GB of a checkpoint with Adam's states fit and take at most 100 s; else the model alone is saved."""
    probe = out / "probe"
    block = os.urandom(1 << 24)
    begin = time.perf_counter()
    with probe.open("wb") as stream:
        for _ in range(64):
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    rate = 64 * len(block) / 1e9 / (time.perf_counter() - begin)
    probe.unlink()
    free = shutil.disk_usage(out).free / 1e9
    enough = free > LEAST_DISK_GB and rate > LEAST_DISK_RATE
    say(
        f"disk: {free:.0f} GB free, {rate:.2f} GB/s; Adam's states are {'' if enough else 'not '}in the checkpoint"
    )
    return enough


@contextmanager
def judge_server(out: Path, folder: Path | None, wanted: bool):
    """A vLLM server of a small model, as docs/guides/local_judge.md describes it, for `judge=vllm_local`."""
    if not wanted:
        yield
        return
    model = ["--model", str(folder)] if folder else ["--model", str(write_model(out / "judge", "0.1B"))]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *model]
    command += [] if folder else ["--load-format", "dummy", "--max-model-len", "32768"]
    command += ["--served-model-name", "judge", "--port", "8000", "--enforce-eager"]
    command += ["--gpu-memory-utilization", "0.05", "--max-num-seqs", "32"]
    command += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
    os.environ["PV_RL_JUDGE_MODEL"] = "judge"
    begin = time.perf_counter()
    with (out / "judge.log").open("a") as stream:
        server = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        while True:
            try:
                urllib.request.urlopen("http://localhost:8000/health", timeout=2)
                break
            except OSError:
                time.sleep(1)
            if server.poll() is not None or time.perf_counter() - begin > 180:
                print((out / "judge.log").read_text(errors="replace")[-4000:], flush=True)
                raise SystemExit("the judge's server did not start; --judge rules does without")
        say(f"the judge's server answers after {time.perf_counter() - begin:.0f} s")
        yield
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    main()
