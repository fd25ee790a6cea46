"""What does an update cost with `balanced`, beside verl's `token-mean` on the same rows?

The whole step from the finished rollouts on, by verl's own trainer methods and its actor worker (FSDP2) on a CPU:
padding, length balancing, advantages, and with `balanced` the weights and the metrics under `pv_rl/`, then forward,
backward and the optimizer. The model is the lab's (0.9M parameters, so that anything we add shows); rows are lab-sized.
Sides take turns, each round in an order of its own; a ratio is of two sides of the same round. `token-mean` runs twice
a round: the ratio of those two says how well this machine can tell. `fastest` is of the fastest step of each side,
which what else the machine does disturbs least. Last, the time in our own functions, measured from inside.
TransferQueue's round trip is in none of it. One thread, so that the CPU time of
the process is all the work that is done.

    python benchmarks/update_step.py
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from grid.ranks import join, on_cpu

SIDES = {"token-mean again": "token-mean", "balanced": "balanced", "dapo@batch": "dapo@batch"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--prompts", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.set_num_threads(1)
        on_cpu()
        join(rank=0, ranks=1, rendezvous=f"{folder}/rendezvous")
        steps = steppers(asked.prompts)
        seconds = measure(steps, asked.rounds)
        added = {side: time_added(*steps[side]) for side in ("balanced", "dapo@batch")}
    print(f"{asked.rounds} rounds of {asked.prompts} prompts x 8 responses, one thread; ratios to token-mean")
    for kind, by_side in seconds.items():
        base = np.array(by_side["token-mean"])
        print(f"{kind:4} {'token-mean':17} median {np.median(base):.3f} s")
        for side in SIDES:
            ratios = np.array(by_side[side]) / base
            drawn = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
            low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
            fastest = min(by_side[side]) / base.min()
            interval = f"95 % {low:.4f} to {high:.4f}"
            print(f"{kind:4} {side:17} median {np.median(ratios):.4f}   {interval}   fastest {fastest:.4f}")
    for side, (ours, step) in added.items():
        print(f"our own functions, {side:11} {1e3 * ours:.1f} ms of {1e3 * step:.0f}: {ours / step:.4f}")


def steppers(prompts: int):
    """For each side two functions: set its mode, and do a step. All share the worker and the rows."""
    from grid.cases import Case, make_scores
    from grid.driver import Driver
    from grid.worker import build_actor, configure

    from pv_lab import MODEL_DIR

    actor = build_actor(str(MODEL_DIR), "float32")
    lengths = tuple(tuple(8 + (37 * p + 53 * r) % 110 for r in range(8)) for p in range(prompts))
    case = Case(groups=lengths, balance=True, micro_tokens=4096)
    rows, scores = make_rows(case), make_scores(case)

    def step() -> None:
        driver = Driver(actor.config, 0, 1, actor.worker.update_actor)
        driver.step(rows, scores, balance=True, is_weights=False)

    modes = {"token-mean": "token-mean"} | SIDES
    return {
        side: (functools.partial(configure, actor, replace(case, spec=spec)), step)
        for side, spec in modes.items()
    }


def make_rows(case):
    """Random words of the lab; old and reference log-probs as a policy near the model has them."""
    from grid.oracle import Row

    from pv_lab.tokenizer import VOCABULARY

    generator = torch.Generator().manual_seed(0)
    rows = []
    for group, lengths in enumerate(case.groups):
        for length in lengths:
            words = torch.randint(5, len(VOCABULARY), (40 + length,), generator=generator)
            log_probs = -torch.rand(length, generator=generator)
            same = {"old_log_probs": log_probs, "ref_log_probs": log_probs, "advantages": log_probs}
            mask = torch.ones(length, dtype=torch.long)
            rows.append(
                Row(
                    group=f"p{group}",
                    prompt=words[:40],
                    response=words[40:],
                    mask=mask,
                    is_weights=torch.ones(length),
                    **same,
                )
            )
    return rows


def measure(steps, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Wall and CPU seconds of each side in each round, after two rounds that do not count."""
    clocks = {"wall": time.perf_counter, "cpu": time.process_time}
    seconds: dict[str, dict[str, list[float]]] = {kind: {side: [] for side in steps} for kind in clocks}
    order = random.Random(0)
    for number in range(rounds + 2):
        for side in order.sample(list(steps), len(steps)):
            set_mode, step = steps[side]
            set_mode()
            begin = {kind: clock() for kind, clock in clocks.items()}
            step()
            for kind, clock in clocks.items():
                if number >= 2:
                    seconds[kind][side].append(clock() - begin[kind])
    return seconds


def time_added(set_mode, step, times: int = 8) -> tuple[float, float]:
    """Seconds of a step that pass in our own functions, and those of the step. What verl then need not do is not
    taken off, so this is more than what a mode adds.
    """
    from pv_rl.verl_adapter import aggregation, batch_weights, loss_functions, trainers

    ours = {
        trainers: ("run_hooks", "state_of", "TransferQueueRows"),
        batch_weights: ("_gather", "batch_fields"),
        loss_functions: ("_fetch", "_metrics"),
        aggregation: ("weighted_sum",),
    }
    spent = [0.0]

    def timed(function):
        def call(*arguments, **options):
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent[0] += time.perf_counter() - begin

        return call

    set_mode()
    with contextlib.ExitStack() as stack:
        for module, names in ours.items():
            for name in names:
                stack.enter_context(mock.patch.object(module, name, timed(getattr(module, name))))
        begin = time.perf_counter()
        for _ in range(times):
            step()
    return spent[0] / times, (time.perf_counter() - begin) / times


if __name__ == "__main__":
    main()
