"""Order of lengths, seed by seed: dapo > balanced > grpo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial

from pv_judge.pages.text import number, plural
from pv_lab.runs.measures import LENGTH
from pv_lab.runs.stages import value_at, windows
from pv_rl.errors import PvRlError
from pv_rl.losses import resolve_mode
from pv_runs.report.interval import MeanOfSeeds, mean_of_seeds
from pv_runs.report.settings import Setting

__all__ = ["Order", "find_orders", "say_order"]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Lengths of weightings that differ in eta only, at one stage."""

    stage: str
    first: int
    """Steps that lengths are means over, from this one."""
    last: int
    """To this one."""
    labels: tuple[str, ...]
    """The weightings, from eta 0 (dapo) to eta 1 (grpo): the longest first, if the order is there."""
    seeds: tuple[str, ...]
    """Those of which every weighting has a run that ended."""
    in_order: tuple[str, ...]
    """Seeds in which each weighting is longer than the next."""
    differences: Mapping[tuple[str, str], MeanOfSeeds]
    """Tokens: each weighting less the next, and the first less the last; means of paired differences over `seeds`."""

    @property
    def there(self) -> bool:
        """In every seed, and no interval of a difference between neighbours holds 0."""
        lows = [self.differences[pair].low for pair in pairwise(self.labels)]
        return self.in_order == self.seeds and all(low is not None and low > 0 for low in lows)


def find_orders(settings: Sequence[Setting]) -> list[Order]:
    """At the middle and at the end; none where fewer than two weightings of one scope have ended at the same step."""
    by_eta = sorted(
        (eta, setting.label, setting)
        for setting in settings
        if (eta := _eta(setting)) is not None and setting.step
    )
    chain = [setting for _, _, setting in by_eta]
    if len(chain) < 2 or len({setting.step for setting in chain}) > 1:
        return []
    spans = windows(chain[0].step or 1)
    return [
        order for stage in ("middle", "end") if (order := _order(chain, stage, *spans[stage])) is not None
    ]


def _eta(setting: Setting) -> float | None:
    """0 for dapo, 1 for grpo; None for what is not on the line between them, or of another scope than a prompt."""
    try:
        mode = resolve_mode(setting.results[0].run.mode or "")
    except PvRlError:  # verl's own, or a plugin's that is not installed here
        return None
    eta = {"dapo": 0.0, "grpo": 1.0, "balanced": mode.eta}.get(mode.name)
    return eta if mode.scope == "prompt" else None


def _order(chain: Sequence[Setting], stage: str, first: int, last: int) -> Order | None:
    lengths = [_lengths(setting, first, last) for setting in chain]
    seeds = tuple(seed for seed in lengths[0] if all(seed in one for one in lengths))
    if not seeds:
        return None
    labels = tuple(setting.label for setting in chain)
    places = [*pairwise(range(len(chain))), *([(0, len(chain) - 1)] if len(chain) > 2 else [])]
    differences = {}
    for longer, shorter in places:
        mean = mean_of_seeds([lengths[longer][seed] - lengths[shorter][seed] for seed in seeds])
        assert mean is not None  # there is a seed
        differences[labels[longer], labels[shorter]] = mean
    in_order = tuple(seed for seed in seeds if all(a[seed] > b[seed] for a, b in pairwise(lengths)))
    return Order(
        stage=stage,
        first=first,
        last=last,
        labels=labels,
        seeds=seeds,
        in_order=in_order,
        differences=differences,
    )


def _lengths(setting: Setting, first: int, last: int) -> dict[str, float]:
    """By seed; of two runs of a seed, the last."""
    found = {}
    for result in setting.averaged:
        length = value_at(result.run, LENGTH.keys[0], first, last)
        if result.run.seed is not None and length is not None:
            found[result.run.seed] = length
    return found


def say_order(order: Order) -> str:
    """A sentence for the verdict, one for what it rests on, one for what chance would do."""
    count = len(order.seeds)
    how_many = f"{len(order.in_order)} of {plural(count, 'seed')}"
    if order.there:
        verdict = f"is there: in {how_many}, and no interval of a difference between neighbours holds 0"
    elif order.in_order == order.seeds:
        why = (
            "an interval of a difference between neighbours holds 0"
            if count > 1
            else "one seed has no interval"
        )
        verdict = f"is there in {how_many}, but {why}, so that it is not shown"
    else:
        verdict = f"is not there: it holds in {how_many}"
    return (
        f"{order.stage.capitalize()} ({say_steps(order.first, order.last)}): the order of lengths "
        f"{' > '.join(order.labels)} {verdict}. {'; '.join(_say_differences(order))}. "
        f"Without any effect it would hold in 1 of {factorial(len(order.labels))} seeds."
    )


def say_steps(first: int, last: int) -> str:
    """`step 3`, `steps 1 to 3`."""
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _say_differences(order: Order) -> Iterator[str]:
    for (longer, shorter), mean in order.differences.items():
        interval = (
            "no interval of one seed"
            if mean.low is None or mean.high is None
            else f"95 % interval {number(mean.low, mean.mean)} to {number(mean.high, mean.mean)}"
        )
        yield f"{longer} - {shorter} is {number(mean.mean)} tokens ({interval})"
