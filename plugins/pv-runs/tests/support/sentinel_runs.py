"""Made-up runs for the sentinel: 16 prompts x 8 responses a step, by the column names of the lab's loop.

A response is a short acceptance or a check. What a step's policy does is a `Policy`; a run is a function from the
step to one. Prompts differ in how hard they are, so that responses of a prompt hang together and shares scatter more
than 128 independent responses would.

    python plugins/pv-runs/tests/support/sentinel_runs.py

prints when the sentinel alarms, beside when accuracy has fallen by 10 points.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median

import typer

from pv_runs.sentinel import Alarm, SentinelConfig, Watcher

PROMPTS, RESPONSES, MAX_TOKENS = 16, 8, 128


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


def healthy(step: int) -> Policy:
    """Accuracy .6 to .9 and length 20 to 45 in 100 steps, most of it in the first 50."""
    learned = 1 - math.exp(-step / 25)
    return Policy(short=0.55 - 0.5 * learned, sharp=0.9 + 2.2 * learned, tokens=33 + 11 * learned)


def slope(step: int, begin: int, steps: int) -> float:
    """A logistic curve from 0 to 1 that begins at `begin` and takes `steps`."""
    return 1 / (1 + math.exp(-6 * (2 * (step - begin) / steps - 1)))


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


def run(at: Callable[[int], Policy], steps: int, seed: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Step and columns, from step 1 on."""
    rng = random.Random(seed)
    for step in range(1, steps + 1):
        yield step, _columns(at(step), rng)


def held_out(policy: Policy, proofs: int = 4000) -> float:
    """Balanced accuracy of the policy, without the noise of a step."""
    rng = random.Random(0)
    right = [
        _response(policy, label, rng.gauss(0, 1), rng)[0]
        for label in (True, False)
        for _ in range(proofs // 2)
    ]
    half = proofs // 2
    return (sum(v is True for v in right[:half]) + sum(v is False for v in right[half:])) / proofs


def _columns(policy: Policy, rng: random.Random) -> dict[str, float]:
    rows = []
    for _ in range(PROMPTS):
        label, hard = rng.random() < 0.6, rng.gauss(0, 1)
        rows += [(label, *_response(policy, label, hard, rng)) for _ in range(RESPONSES)]
    return {
        "reward": _mean([verdict is label for label, verdict, _, _ in rows]),
        "right_proofs": _mean([verdict is True for label, verdict, _, _ in rows if label]),
        "wrong_proofs": _mean([verdict is False for label, verdict, _, _ in rows if not label]),
        "accepted": _mean([verdict is True for _, verdict, _, _ in rows]),
        "label_true": _mean([label for label, *_ in rows]),
        "no_verdict": _mean([verdict is None for _, verdict, _, _ in rows]),
        "length_accepting": _mean([n for _, verdict, n, _ in rows if verdict is True]),
        "length_rejecting": _mean([n for _, verdict, n, _ in rows if verdict is False]),
        "cut_off": _mean([n >= MAX_TOKENS for _, _, n, _ in rows]),
        "bare": _mean([n <= 3 for _, _, n, _ in rows]),
        "repetitive": _mean([looping for *_, looping in rows]),
        "grad_norm": 0.15 * math.exp(rng.gauss(0, 0.3)),
    }


def _response(policy: Policy, label: bool, hard: float, rng: random.Random) -> tuple[bool | None, int, bool]:
    """Verdict, tokens, and whether it loops."""
    if rng.random() < policy.short:
        return True, rng.randint(3, 8), False
    looping = rng.random() < policy.loops
    tokens = round(policy.tokens * math.exp(rng.gauss(0, 0.3)) * (1 + looping))
    if tokens >= MAX_TOKENS:
        return None, MAX_TOKENS, looping
    right = rng.random() < 1 / (1 + math.exp(hard - policy.sharp))
    return label is right, tokens, looping


def _mean(values: list) -> float:
    return sum(values) / len(values) if values else math.nan


def first_fall(at: Callable[[int], Policy], steps: int = 100) -> int | None:
    """First step at which held-out balanced accuracy is 10 points below its best so far."""
    best = 0.0
    for step in range(1, steps + 1):
        accuracy = held_out(at(step))
        best = max(best, accuracy)
        if accuracy < best - 0.1:
            return step
    return None


def main(seeds: int = 20, steps_per_false_alarm: float = 1000.0) -> None:
    """Print a line for each kind of run."""
    config = SentinelConfig(responses=PROMPTS * RESPONSES, steps_per_false_alarm=steps_per_false_alarm)

    def alarms(at: Callable[[int], Policy]) -> list[list[Alarm]]:
        watchers = [Watcher(config) for _ in range(seeds)]
        return [
            [alarm for row in run(at, 100, seed) for alarm in watcher.observe(*row)]
            for seed, watcher in enumerate(watchers)
        ]

    for name, hurry in (("healthy", 1), ("healthy, three times as fast", 3)):
        found = alarms(lambda step, hurry=hurry: healthy(hurry * step))
        typer.echo(f"{name}: {sum(map(len, found))} alarms in {sum(map(bool, found))} of {seeds} runs")
    for at in (accepts_all, runs_away, loops, forgets):
        for begin, steps in ((40, 20), (30, 60)):

            def policy(step: int, at=at, begin: int = begin, steps: int = steps) -> Policy:
                return at(step, begin, steps)

            fall, found = first_fall(policy) or 0, alarms(policy)
            early = sum(bool(of_run) and of_run[0].step < begin for of_run in found)
            lead = [fall - of_run[0].step for of_run in found if of_run]
            first = sorted({of_run[0].sign for of_run in found if of_run})
            typer.echo(
                f"{at.__name__} in {steps} steps: accuracy has fallen at step {fall}, first alarm {median(lead):g} "
                f"steps before ({min(lead)} to {max(lead)}), by {', '.join(first)}; before the collapse began {early}, "
                f"no alarm {seeds - len(lead)}"
            )


if __name__ == "__main__":
    typer.run(main)
