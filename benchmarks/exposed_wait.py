"""How much of a step is time in which nothing but the judge is waited for?

verl's own trainer on the CPU in three modes, with a judge server on loopback whose latency is log-normal. Rows are
scored by `verdict_fluency` without a judge (`rules`), with one (`ours`), and by verl's `rate_limited` manager with a
plain reward function (`limited`, exposed/plain_judge.py). The number is how many questions run at the same time: 16,
half of a step's rows, and 8, which is verl's default of 1 in each of 8 workers (one worker here, to save memory).
Decoding and training are given lower bounds (exposed/paced.py), so that a step takes some multiple of a judge's answer
as it does on a cluster, and the same on every side.

    python benchmarks/exposed_wait.py      # an hour and a half on two idle cores
    python benchmarks/exposed_wait.py --modes sync --latencies 0.5 --steps 2 --token-s 0.02 --train-s 2

`own` is pv_rl/judge/exposed_wait_s as a share of the step. `longer` is independent of it and the same for all sides:
(mean step - mean step without a judge) / mean step. `trained` shows whether training kept to its bound.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).resolve().parent))
from exposed.runs import MODES, Case, Load, concurrency, run

SIDES = ("rules", "ours:16", "limited:16", "limited:8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--sides", nargs="+", default=list(SIDES), help="`rules` is needed for `longer`")
    parser.add_argument("--latencies", type=float, nargs="+", default=[0.5, 2, 10], help="medians, seconds")
    parser.add_argument("--sigma", type=float, default=0.5, help="of the log-normal latency")
    parser.add_argument("--steps", type=int, default=4, help="counted at each latency, after 2 that are not")
    parser.add_argument("--prompts", type=int, default=4, help="a step")
    parser.add_argument("--responses", type=int, default=8, help="a prompt")
    parser.add_argument("--end", type=float, default=0.05, help="that a token is a response's last")
    parser.add_argument("--token-s", type=float, default=0.6, help="a decoding step takes at least this long")
    parser.add_argument(
        "--train-s", type=float, default=40.0, help="training takes at least this long a step"
    )
    parser.add_argument(
        "--poll-s", type=float, default=0.2, help="how often verl looks for rows; its own is 2"
    )
    parser.add_argument("--warmup-batches", type=float, default=1, help="num_warmup_batches; verl's is 1")
    parser.add_argument("--longest-s", type=float, default=30.0, help="leave out what keeps a step longer")
    parser.add_argument("--at-once", type=int, default=3, help="runs at the same time, of different modes")
    asked = parser.parse_args()
    load = Load(
        prompts=asked.prompts,
        responses=asked.responses,
        steps=asked.steps,
        sigma=asked.sigma,
        end=asked.end,
        token_s=asked.token_s,
        train_s=asked.train_s,
        poll_s=asked.poll_s,
        warmup_batches=asked.warmup_batches,
    )
    print(machine(), "\n", load, flush=True)
    cases: list[Case] = []
    for side in asked.sides:
        latencies = possible(side, asked.latencies, load, asked.longest_s)
        if not latencies:
            continue
        print(f"\nload average {os.getloadavg()[0]:.1f}", flush=True)
        with ThreadPoolExecutor(asked.at_once) as pool:
            runs = [pool.submit(run, mode, side, latencies, load) for mode in asked.modes]
            for one in runs:
                found = one.result()
                cases += found
                for case in found:
                    print(line(case, cases), flush=True)


def possible(side: str, latencies: list[float], load: Load, longest_s: float) -> list[float]:
    """The latencies at which the concurrency lets a step's rows through in time; without a judge one is enough."""
    if side == "rules":
        return latencies[:1]
    mean_s = {latency: latency * 2.718281828 ** (load.sigma**2 / 2) for latency in latencies}
    at_least = {
        latency: load.prompts * load.responses * mean_s[latency] / concurrency(side) for latency in latencies
    }
    for latency, seconds in at_least.items():
        if seconds > longest_s:
            print(f"\n{side} at {latency:g} s is left out: a step would take {seconds:.0f} s at least")
    return [latency for latency, seconds in at_least.items() if seconds <= longest_s]


def line(case: Case, cases: list[Case]) -> str:
    step = mean(case.step_s)
    text = f"{case.mode:15} {case.side:12} {case.latency:5.1f} s: step {median(case.step_s):6.2f} s (mean {step:6.2f})"
    trained = [step - gen for step, gen in zip(case.step_s, case.gen_s, strict=True)]
    text += f", trained {min(trained):.1f} to {max(trained):.1f} s"
    if case.side == "rules":
        return text.replace(f"{case.latency:5.1f} s", "       ")
    without = next((mean(one.step_s) for one in cases if (one.mode, one.side) == (case.mode, "rules")), None)
    if without is not None:
        text += f", longer {(step - without) / step:6.1%}"
    if case.exposed_s:
        text += f", own {sum(case.exposed_s) / sum(case.step_s):6.1%}"
    return text + f"; {case.requests} requests, {case.most_in_flight} at once at most"


def machine() -> str:
    models = [one for one in Path("/proc/cpuinfo").read_text().splitlines() if one.startswith("model name")]
    return f"{models[0].partition(':')[2].strip()}, {len(models)} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
