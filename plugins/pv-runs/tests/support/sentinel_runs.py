"""Simulated training runs for the sentinel: 16 prompts x 8 responses a step, with the column names of the lab's loop.

A response is a short acceptance or a check. A `Policy` describes the responses of a step; a run is a function from the
step to a policy. Prompts differ in difficulty, so shares scatter more than those of 128 independent responses would.

    python plugins/pv-runs/tests/support/sentinel_runs.py --seeds 200

prints hits and delays for each kind of collapse, alarms per 1,000 steps for each kind of healthy run, and alarms on
noise over the requested rate.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np
import typer

from pv_runs.sentinel import DETECTORS, Alarm, SentinelConfig, Watcher
from pv_runs.sentinel.chart import Chart
from pv_runs.sentinel.reading import Reading
from pv_runs.sentinel.run_length import threshold

PROMPTS, RESPONSES, MAX_TOKENS = 16, 8, 128
CONFIG = SentinelConfig(responses=PROMPTS * RESPONSES)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the responses of a step are like."""

    short: float
    """Share of short acceptances."""
    sharp: float
    """Logit of a check being right, for a prompt of mean difficulty."""
    tokens: float
    """Median length of a check."""
    loops: float = 0.01
    """Share of checks that loop; one that does is twice as long."""
    malformed: float = 0.02
    """Share of responses without a verdict."""
    entropy: float = 0.5
    gradient: float = 0.15
    room: float = MAX_TOKENS
    """Length limit of a response, tokens."""


At = Callable[[int], Policy]


def healthy(step: int) -> Policy:
    """Accuracy .6 to .9, length 20 to 45 and entropy .5 to .3 in 100 steps, most of it in the first 50."""
    learned = 1 - math.exp(-step / 25)
    return Policy(
        short=0.55 - 0.5 * learned,
        sharp=0.9 + 2.2 * learned,
        tokens=33 + 11 * learned,
        entropy=0.5 - 0.2 * learned,
    )


def slope(step: int, begin: int, steps: int) -> float:
    """A logistic curve from 0 to 1 that begins at `begin` and takes `steps`."""
    return 1 / (1 + math.exp(-6 * (2 * (step - begin) / steps - 1)))


def harder(policy: Policy, by: float) -> Policy:
    """The same policy on harder prompts; `by` 1 costs about 5 points of accuracy and 15 % more tokens."""
    return replace(
        policy,
        sharp=policy.sharp - 0.5 * by,
        tokens=policy.tokens * math.exp(0.15 * by),
        malformed=policy.malformed * math.exp(0.3 * by),
        entropy=policy.entropy * math.exp(0.15 * by),
        gradient=policy.gradient * math.exp(0.15 * by),
    )


# Collapses: each begins at `begin` and takes about `steps`.


def accepts_all(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Short acceptances take over."""
    policy, gone = healthy(step), slope(step, begin, steps)
    return replace(policy, short=policy.short + (0.98 - policy.short) * gone)


def runs_away(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Checks get eight times as long, past the limit."""
    policy, gone = healthy(step), slope(step, begin, steps)
    return replace(policy, tokens=policy.tokens * 8**gone)


def loops(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Checks repeat themselves, and what they say is worth less."""
    policy, gone = healthy(step), slope(step, begin, steps)
    return replace(policy, loops=0.01 + 0.8 * gone, sharp=policy.sharp * (1 - gone))


def forgets(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Checks become guesses, as with wrong labels."""
    policy = healthy(step)
    return replace(policy, sharp=policy.sharp * (1 - slope(step, begin, steps)))


def loses_the_format(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Half of the responses have no verdict any more."""
    return replace(healthy(step), malformed=0.02 + 0.48 * slope(step, begin, steps))


def gets_random(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Entropy grows to eight times its value."""
    policy = healthy(step)
    return replace(policy, entropy=policy.entropy * 8 ** slope(step, begin, steps))


def gets_certain(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Entropy falls by a factor of 10 in `steps`, and on."""
    policy = healthy(step)
    return replace(policy, entropy=policy.entropy * 10 ** (-max(0, step - begin) / steps))


def grows(step: int, begin: int = 40, steps: int = 70) -> Policy:
    """Lengths double in `steps`, and again; 70 is 1 % a step. There is room for it."""
    policy = healthy(step)
    return replace(policy, tokens=policy.tokens * 2 ** (max(0, step - begin) / steps), room=math.inf)


def shrinks(step: int, begin: int = 40, steps: int = 70) -> Policy:
    """Lengths halve in `steps`, and again."""
    policy = healthy(step)
    return replace(policy, tokens=policy.tokens * 2 ** (-max(0, step - begin) / steps))


def explodes(step: int, begin: int = 40, steps: int = 20) -> Policy:
    """Gradients grow to 20 times their norm."""
    policy = healthy(step)
    return replace(policy, gradient=policy.gradient * 20 ** slope(step, begin, steps))


# Healthy runs.


def cycles(step: int, period: int = 100, amplitude: float = 1.0) -> Policy:
    """The difficulty of the prompts goes up and down."""
    return harder(healthy(step), amplitude * math.sin(2 * math.pi * step / period))


def curriculum(step: int) -> Policy:
    """Prompts get harder once, over 100 steps."""
    return harder(healthy(step), min(max(0.0, (step - 100) / 100), 1.0))


def grows_up(step: int) -> Policy:
    """Lengths get 2.5 times as long in 300 steps, evenly, and entropy falls to a third."""
    policy, part = healthy(step), min(step / 300, 1.0)
    return replace(policy, short=0.05, tokens=33 * 2.5**part, entropy=0.5 * 3**-part, room=math.inf)


def run(at: At, steps: int, seed: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Step and columns, from step 1 on."""
    rng = np.random.default_rng(seed)
    for step in range(1, steps + 1):
        yield step, _columns(at(step), rng)


def held_out(policy: Policy, proofs: int = 40_000) -> float:
    """Balanced accuracy of the policy, without the noise of a step."""
    rng = np.random.default_rng(0)
    labels = np.arange(proofs) % 2 == 0
    accepted, rejected, *_ = _sample(policy, labels, rng.normal(size=proofs), rng)
    return float((accepted[labels].mean() + rejected[~labels].mean()) / 2)


def _columns(policy: Policy, rng: np.random.Generator) -> dict[str, float]:
    labels = np.repeat(rng.random(PROMPTS) < 0.6, RESPONSES)
    hard = np.repeat(rng.normal(size=PROMPTS), RESPONSES)
    accepted, rejected, tokens, looping = _sample(policy, labels, hard, rng)
    return {
        "reward": _mean(np.where(labels, accepted, rejected)),
        "right_proofs": _mean(accepted[labels]),
        "wrong_proofs": _mean(rejected[~labels]),
        "accepted": _mean(accepted),
        "label_true": _mean(labels),
        "no_verdict": _mean(~accepted & ~rejected),
        "length": _mean(tokens),
        "length_accepting": _mean(tokens[accepted]),
        "length_rejecting": _mean(tokens[rejected]),
        "cut_off": _mean(tokens >= policy.room),
        "bare": _mean(tokens <= 3),
        "repetitive": _mean(looping),
        "grad_norm": policy.gradient * math.exp(rng.normal(0, 0.3)),
        "entropy": policy.entropy * math.exp(rng.normal(0, 0.05)),
    }


def _sample(policy: Policy, labels: np.ndarray, hard: np.ndarray, rng: np.random.Generator):
    """(N,) each: accepted, rejected (neither without a verdict), tokens, and whether it loops."""
    size = len(labels)
    short = rng.random(size) < policy.short
    looping = ~short & (rng.random(size) < policy.loops)
    checks = np.round(policy.tokens * np.exp(rng.normal(0, 0.3, size)) * (1 + looping))
    tokens = np.where(short, rng.integers(3, 9, size), np.clip(checks, 1, policy.room))
    right = rng.random(size) < 1 / (1 + np.exp(hard - policy.sharp))
    missing = ~short & ((tokens >= policy.room) | (rng.random(size) < policy.malformed))
    accepted = short | (right == labels)
    return accepted & ~missing, ~accepted & ~missing, tokens, looping


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def watched(at: At, *, seed: int = 0, steps: int = 100, config: SentinelConfig = CONFIG) -> list[Alarm]:
    """The alarms of one run."""
    watcher = Watcher(config)
    return [alarm for step, metrics in run(at, steps, seed) for alarm in watcher.observe(step, metrics)]


def noise(
    rng: random.Random, *, correlation: float = 0.0, wander: float = 0.0, trend: float = 0.0
) -> Iterator[float]:
    """Values of variance 1, step after step.

    Args:
        rng: where they come from.
        correlation: of one step's noise with the next one's.
        wander: standard deviation of a random step that the level takes at each step.
        trend: what the level gains a step.
    """
    level, now = 0.0, rng.gauss(0, 1)
    while True:
        yield level + now
        now = correlation * now + math.sqrt(1 - correlation**2) * rng.gauss(0, 1)
        level += trend + rng.gauss(0, wander)


ONE_SIDED = replace(DETECTORS["entropy"], sides=("up",), slack=0.0)


def alarm_rate(
    config: SentinelConfig, run_length: float, *, seed: int, runs: int, steps: int = 200, **of_noise: float
) -> float:
    """Alarms of one side on noise, over the requested rate: 1 is what was asked for.

    Args:
        config: memories, shift, cap, warm-up.
        run_length: steps to a false alarm, as asked for.
        seed: of the noise.
        runs: each begins anew, with its warm-up.
        steps: of a run, after the warm-up.
        of_noise: see `noise`.
    """
    limit, alarms = threshold(config.reference, run_length), 0
    for index in range(runs):
        chart, values = Chart(), noise(random.Random(f"{seed}/{index}"), **of_noise)
        for step in range(1, config.warm_up + steps + 1):
            x = next(values)
            reading = Reading(value=x, scaled=x, least=1e-6)
            alarms += chart.observe(step, reading, ONE_SIDED, config, limit) is not None
    return alarms / (runs * steps) * run_length


WANDER = 1 / CONFIG.memory / math.sqrt(1 - 1 / CONFIG.memory)
NOISES = {
    "independent": {},
    "level wanders by the model's amount": {"wander": WANDER},
    "level wanders by twice that": {"wander": 2 * WANDER},
    "autocorrelation 0.1": {"correlation": 0.1},
    "autocorrelation 0.3": {"correlation": 0.3},
    "upward trend of 0.02 a step": {"trend": 0.02},
    "downward trend of 0.1 a step": {"trend": -0.1},
}
BEGIN = 40
COLLAPSES: dict[str, tuple[At, int]] = {
    f"{at.__name__} {steps}": (partial(at, begin=BEGIN, steps=steps), length)
    for at, all_steps, length in (
        *((one, (20, 60), 110) for one in (accepts_all, runs_away, loops, forgets, loses_the_format)),
        *((one, (20, 60), 110) for one in (gets_random, explodes)),
        (gets_certain, (20, 100, 300), 400),
        (grows, (5, 20, 70), 250),
        (shrinks, (5, 20, 70), 250),
    )
    for steps in all_steps
}
"""By name: the run, which begins to collapse at step `BEGIN`, and its steps."""
HEALTHY: dict[str, tuple[At, int]] = {
    "healthy": (healthy, 300),
    "healthy, three times as fast": (lambda step: healthy(3 * step), 300),
    **{
        f"cycle of {period}, amplitude {amplitude:g}": (
            partial(cycles, period=period, amplitude=amplitude),
            max(300, period),
        )
        for amplitude in (1.0, 2.0)
        for period in (50, 100, 200, 500)
    },
    "curriculum": (curriculum, 300),
    "lengths x 2.5, entropy / 3 in 300 steps": (grows_up, 300),
}


def _of_one(name: str, watch: dict, seed: int) -> tuple[int, int | None, str]:
    """False alarms, the step of the first true one after `BEGIN`, and its sign."""
    at, steps = (COLLAPSES | HEALTHY)[name]
    watcher, alarms = Watcher(replace(CONFIG, **watch)), []
    for step, metrics in run(at, steps, seed):
        for alarm in watcher.observe(step, metrics):
            if name in COLLAPSES and step > BEGIN:
                return len(alarms), step, alarm.sign
            alarms.append(alarm)
    return len(alarms), None, " ".join(alarm.sign for alarm in alarms if name in HEALTHY)


def main(
    seeds: int = 200, first_seed: int = 10_000, watch: str = "{}", kinds: str = "", workers: int = 2
) -> None:
    """Print a Markdown row for each kind of run.

    Args:
        seeds: runs of each kind.
        first_seed: of them.
        watch: settings of `SentinelConfig` as JSON.
        kinds: only those whose name has a match of this regular expression.
        workers: processes.
    """
    settings = json.loads(watch)
    with ProcessPoolExecutor(workers) as pool:
        typer.echo(
            "| collapse, steps | hits | delay, median (5 % to 95 %) | before it, /1,000 steps | first signs |"
        )
        typer.echo("|---|---|---|---|---|")
        for name in (one for one in COLLAPSES if re.search(kinds, one)):
            found = list(
                pool.map(partial(_of_one, name, settings), range(first_seed, first_seed + seeds), chunksize=8)
            )
            delays = sorted(step - BEGIN for _, step, _ in found if step is not None)
            before = sum(false for false, *_ in found) / seeds / BEGIN * 1000
            at = [delays[int(part * (len(delays) - 1))] for part in (0.05, 0.95)] if delays else []
            spread = f"{median(delays):g} ({at[0]} to {at[1]})" if delays else "-"
            typer.echo(f"| {name} | {len(delays)} of {seeds} | {spread} | {before:.2f} | {_often(found)} |")
        typer.echo("\n| healthy | alarms / 1,000 steps | runs with one | signs |\n|---|---|---|---|")
        for name in (one for one in HEALTHY if re.search(kinds, one)):
            found = list(
                pool.map(partial(_of_one, name, settings), range(first_seed, first_seed + seeds), chunksize=8)
            )
            alarms, steps = sum(false for false, *_ in found), HEALTHY[name][1]
            runs = sum(false > 0 for false, *_ in found)
            rate = alarms / seeds / steps * 1000
            typer.echo(f"| {name} | {rate:.2f} | {runs} of {seeds} | {_often(found)} |")
    typer.echo("\n| noise | alarms of one side / asked for |\n|---|---|")
    for name in (one for one in NOISES if re.search(kinds, one)):
        ratio = alarm_rate(CONFIG, 1000.0, seed=first_seed, runs=seeds, **NOISES[name])
        error = math.sqrt(max(ratio, 1 / seeds) * 1000 / (200 * seeds))
        typer.echo(f"| {name} | {ratio:.2f} +- {error:.2f} |")


def _often(found: list[tuple[int, int | None, str]]) -> str:
    signs = [sign for *_, of_run in found for sign in of_run.split()]
    names = sorted(set(signs), key=signs.count, reverse=True)[:4]
    return ", ".join(f"`{name}` {signs.count(name)}" for name in names)


if __name__ == "__main__":
    typer.run(main)
