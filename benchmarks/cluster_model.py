"""How much of a step would be time in which nothing but the judge is waited for, on the paper's cluster?

A discrete-event model (cluster/) of 60 prompts x 8 responses a step on 48 GPUs of rollout and 32 of training. What the
paper does not say is assumed, stated below, and varied. `share` is (step - step without a judge) / step over the
same responses; of several seeds, the mean and the extremes.

    python -m venv /tmp/model && /tmp/model/bin/pip install simpy
    /tmp/model/bin/python benchmarks/cluster_model.py                             # 10 minutes
    /tmp/model/bin/python benchmarks/cluster_model.py --validate exposed.json     # of exposed_wait.py --json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster.judge import JudgePolicy, log_normal
from cluster.trainer import Cluster, Mode, simulate

PROMPTS, RESPONSES = 60, 8  # the paper: batch size 480, 8 rollouts a prompt
MEAN_TOKENS = 778  # the paper: 112M generated tokens in 300 steps of 480
LONGEST = 16_000  # the paper: max response length
MODES: tuple[Mode, ...] = ("sync", "colocate_async", "separate_async", "one_step_off")
OURS = "pv-rl, 64 in the run (default)"
DEFAULT = "rate_limited, 1 in each of 8 workers (default)"
BATCHED = "each batch as a whole, 64 at a time"
LATENCIES = (0.5, 2.0, 10.0)
CALL_TIMEOUT_S = 60.0  # pv-rl's timeouts.first_byte_s
ROW_TIMEOUT_S = 300.0  # verl's reward.timeout


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What the paper does not say."""

    token_s: float = 0.02
    """Seconds a token, for each response: 10 to 20 responses at a time on each GPU of the rollout."""
    length_sigma: float = 1.0
    """Of the log-normal length."""
    train_s: float = 60.0
    sync_s: float = 5.0
    warmup_batches: float = 1.0
    """verl's default of `num_warmup_batches`."""
    latency_sigma: float = 0.5
    failure_rate: float = 0.0
    per_minute: float | None = None


def judges(assumed: Assumed, median_s: float) -> dict[str, JudgePolicy]:
    common = JudgePolicy(
        latency=log_normal(median_s, assumed.latency_sigma),
        concurrency=1,
        per_minute=assumed.per_minute,
        failure_rate=assumed.failure_rate,
        timeout_s=ROW_TIMEOUT_S,
    )
    ours = replace(common, concurrency=64, timeout_s=CALL_TIMEOUT_S, attempts=6, deadline_s=120.0)
    return {
        OURS: ours,
        "pv-rl, 256 in the run": replace(ours, concurrency=256),
        "rate_limited, 8 in each of 8 workers": replace(common, concurrency=8, workers=8),
        DEFAULT: replace(common, concurrency=1, workers=8),
        BATCHED: replace(common, concurrency=64, batched=True),
    }


def cluster(mode: Mode, assumed: Assumed, seed: int) -> Cluster:
    median = MEAN_TOKENS / 2.718281828 ** (assumed.length_sigma**2 / 2)

    def group(number: int) -> list[float]:
        rng = random.Random(f"{seed} {number}")
        drawn = (median * rng.lognormvariate(0.0, assumed.length_sigma) for _ in range(RESPONSES))
        return [assumed.token_s * min(one, LONGEST) for one in drawn]

    return Cluster(
        mode=mode,
        prompts=PROMPTS,
        group=group,
        train_s=assumed.train_s,
        sync_s=assumed.sync_s,
        warmup_batches=assumed.warmup_batches,
        poll_s=0.1 if mode == "one_step_off" else 2.0,  # which awaits its batch
    )


class Shares:
    """Runs the model; the steps without a judge are kept."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.kept: dict[tuple[Mode, Assumed, int], float] = {}

    def without(self, mode: Mode, assumed: Assumed, seed: int = 0) -> float:
        """Mean step without a judge, seconds."""
        key = mode, replace(assumed, latency_sigma=0, failure_rate=0, per_minute=None), seed
        if key not in self.kept:
            self.kept[key] = self.run(mode, assumed, None, seed)[0]
        return self.kept[key]

    def run(self, mode: Mode, assumed: Assumed, policy: JudgePolicy | None, seed: int) -> tuple[float, float]:
        result = simulate(cluster(mode, assumed, seed), policy, self.steps, warm_up=5, seed=seed)
        return mean(result.step_s), result.failed

    def share(self, mode: Mode, assumed: Assumed, policy: JudgePolicy, seeds: int = 1) -> str:
        """The share, and that of the rows without an answer where there are any."""
        runs = [self.run(mode, assumed, policy, seed) for seed in range(seeds)]
        shares = [1 - self.without(mode, assumed, seed) / step for seed, (step, _) in enumerate(runs)]
        text = f"{mean(shares):5.1%}" + (f" ({min(shares):.1%} to {max(shares):.1%})" if seeds > 1 else "")
        failed = mean(failed for _, failed in runs)
        return f"{text}, {failed:.1%} failed" if failed else text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3, help="of the first table; the others have one")
    parser.add_argument("--validate", type=Path, help="compare with what exposed_wait.py --json measured")
    asked = parser.parse_args()
    if asked.validate:
        return validate(json.loads(asked.validate.read_text()), asked.steps, asked.seeds)
    shares, base = Shares(asked.steps), Assumed()
    print(base)
    table(shares, base, asked.seeds)
    vary(shares, base)
    explain(shares, base)


def table(shares: Shares, base: Assumed, seeds: int) -> None:
    larger = replace(base, warmup_batches=1.5)
    for mode, assumed in [*((mode, base) for mode in MODES), ("separate_async", larger)]:
        without = mean(shares.without(mode, assumed, seed) for seed in range(seeds))
        window = f", num_warmup_batches {assumed.warmup_batches:g}" if mode in MODES[1:3] else ""
        print(f"\n{mode}{window}: a step without a judge takes {without:.0f} s; shares at {LATENCIES} s")
        for name in judges(assumed, 1.0):
            if name == BATCHED and mode != "one_step_off":
                continue
            cells = [
                shares.share(mode, assumed, judges(assumed, median)[name], seeds) for median in LATENCIES
            ]
            print(f"  {name:48} " + " | ".join(cells), flush=True)


def vary(shares: Shares, base: Assumed) -> None:
    print("\npv-rl, 64 at a time, 2 s, one thing changed at a time: step without a judge, share")
    changes: list[dict[str, float]] = [
        {},
        *({"warmup_batches": value} for value in (1.25, 1.5, 2.0)),
        *({"token_s": value} for value in (0.01, 0.04)),
        *({"length_sigma": value} for value in (0.8, 1.2)),
        *({"train_s": value} for value in (20.0, 120.0)),
        {"latency_sigma": 1.0},
        {"latency_sigma": 1.0, "warmup_batches": 1.5},
        *({"failure_rate": value} for value in (0.05, 0.2)),
        *({"per_minute": value} for value in (300.0, 600.0)),
    ]
    for change in changes:
        assumed = replace(base, **change)
        policy = judges(assumed, 2.0)[OURS]
        cells = [
            f"{mode} {shares.without(mode, assumed):3.0f} s {shares.share(mode, assumed, policy)}"
            for mode in MODES
        ]
        name = ", ".join(f"{field} {value:g}" for field, value in change.items()) or "as above"
        print(f"  {name:38} " + " | ".join(cells), flush=True)


def explain(shares: Shares, base: Assumed) -> None:
    print("\nthe paper's 20 %: shares at 2 s and 10 s by how many requests run at the same time")
    for mode, batched in (("separate_async", False), ("one_step_off", False), ("one_step_off", True)):
        for concurrency in (4, 8, 16, 32, 64):
            cells = []
            for median in LATENCIES[1:]:
                policy = replace(judges(base, median)[DEFAULT], concurrency=concurrency, workers=1)
                cells.append(shares.share(mode, base, replace(policy, batched=batched)))
            how = "whole batch, then trained on" if batched else "each row as it ends"
            print(f"  {mode:14} {how:28} {concurrency:2}: " + " | ".join(cells), flush=True)


def validate(measured: dict, steps: int, seeds: int) -> None:
    """The model of the runs on the CPU: lengths, pace and training are theirs, the judge is predicted."""
    load, cases = measured["load"], measured["cases"]
    print(measured["machine"], load)
    for mode in dict.fromkeys(case["mode"] for case in cases):
        rules = next(case for case in cases if (case["mode"], case["side"]) == (mode, "rules"))
        train_s = mean(a - b for a, b in zip(rules["step_s"], rules["gen_s"], strict=True))
        for case in cases:
            if case["mode"] != mode:
                continue
            clusters = [of_run(mode, train_s, load, measured["lengths"], seed) for seed in range(seeds)]
            policy = policy_of(case, load["sigma"])
            means = [
                mean(simulate(one, policy, steps, seed=seed).step_s) for seed, one in enumerate(clusters)
            ]
            step, seen = mean(means), mean(case["step_s"])
            print(
                f"{mode:15} {case['side']:12} {case['latency']:5.1f} s: model {step:6.2f} s "
                f"({min(means):.2f} to {max(means):.2f}), run {seen:6.2f} s, {step / seen - 1:+6.1%}"
            )


def of_run(mode: Mode, train_s: float, load: dict, lengths: list[list[int]], seed: int) -> Cluster:
    """A run of exposed_wait.py, with groups drawn from those that it had."""

    def group(number: int) -> list[float]:
        return [load["token_s"] * one for one in random.Random(f"{seed} {number}").choice(lengths)]

    return Cluster(
        mode=mode,
        prompts=load["prompts"],
        group=group,
        train_s=train_s,
        poll_s=load["poll_s"],
        warmup_batches=load["warmup_batches"],
    )


def policy_of(case: dict, sigma: float) -> JudgePolicy | None:
    """The judge of a case of exposed_wait.py: `ours:C`, `limited:C` or `limited:CxW`."""
    first, _, workers = case["side"].partition(":")[2].partition("x")
    latency = log_normal(case["latency"], sigma)
    return JudgePolicy(latency=latency, concurrency=int(first), workers=int(workers or 1)) if first else None


if __name__ == "__main__":
    main()
