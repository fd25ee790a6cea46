"""Options: each way to use votes of one or several verifiers, with its numbers and its cost a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from pv_eval.aggregate.members import MOST_TOGETHER, Member
from pv_eval.aggregate.rules import count_missing_as_rejections, decide, joint_table
from pv_eval.aggregate.weighted import by_logit, by_weight, fold_of, weights_of
from pv_eval.counts import Columns, Floats, Statistic, Sums, VoteCounts, ratio
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.metrics import METRICS, class_sums
from pv_rl.errors import ConfigError

__all__ = [
    "MISSING",
    "NUMBERS",
    "Option",
    "Result",
    "all_options",
    "deciding",
    "estimates",
]

MISSING = ("abstain", "reject")
SIZES = (*range(1, 17), 24, 32, 48, 64, 96, 128)
"""Votes of a verifier, beside the most that there are."""
DOUBLED = (1, 2, 4, 8, 16)
"""Votes of each of two verifiers."""
NUMBERS = ("accuracy", "balanced_accuracy", "accuracy_right", "accuracy_wrong", "missing")
AT_ONCE = 40
"""Options whose sums are columns of one table."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """Votes of some verifiers, and a rule."""

    verifiers: tuple[str, ...]
    each: tuple[int, ...]
    """Votes of each."""
    rule: str
    cost: float
    """Of a proof, in the unit that was asked for."""
    sums: Sums
    """Those of `class_sums`."""

    @property
    def votes(self) -> str:
        """For example `3 + 1`."""
        return " + ".join(map(str, self.each))

    @property
    def who(self) -> str:
        """For example `A + B`."""
        return " + ".join(self.verifiers)

    @property
    def name(self) -> str:
        """For example `A + B, 3 + 1 votes, majority`."""
        return f"{self.who}, {self.votes} votes, {self.rule}" if sum(self.each) > 1 else f"{self.who}, 1 vote"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The numbers of an option."""

    option: Option
    numbers: dict[str, Estimate]
    """By the names of `NUMBERS`."""
    gain: Estimate
    """Of the balanced accuracy (of the accuracy, where one class is absent) over the first option."""
    cost_of_a_point: float
    """Further cost over the first option, by the percentage points gained; NaN without a gain."""


def all_options(
    members: Sequence[Member], costs: Sequence[float], missing: str = "abstain", seed: int = 0
) -> list[Option]:
    """Every option, the cheapest first; of the same cost, single verifiers and simple rules first.

    Args:
        members: on the same pairs.
        costs: of a vote of each.
        missing: `abstain`: a vote without a verdict does not vote; `reject`: it rejects.
        seed: of the folds, and of drawn subsets.

    Raises:
        ConfigError: the treatment of missing verdicts is unknown.
    """
    if missing not in MISSING:
        raise ConfigError(f"--missing {missing!r:.40}; expected {' or '.join(MISSING)}")
    own = [one.counts if missing == "abstain" else count_missing_as_rejections(one.counts) for one in members]
    groups = [
        group
        for size in range(1, min(len(members), MOST_TOGETHER) + 1)
        for group in combinations(range(len(members)), size)
    ]
    fold = fold_of(len(own[0].questions), seed)
    found = []
    for group in groups:
        counts = [own[v] for v in group]
        for each in _votes_of_each([int(one.samples.min()) for one in counts]):
            found += [
                Option(
                    verifiers=tuple(members[v].name for v in group),
                    each=each,
                    rule=rule,
                    cost=sum(k * costs[v] for k, v in zip(each, group, strict=True)),
                    sums=class_sums(counts[0], shares),
                )
                for rule, shares in _shares(counts, each, fold, missing, seed)
            ]
    return sorted(found, key=lambda option: option.cost)


def _votes_of_each(most: Sequence[int]) -> list[tuple[int, ...]]:
    """Of one verifier all sizes, of two also unequal ones, of more the same of each."""
    same = [(k,) * len(most) for k in sorted({k for k in SIZES if k <= min(most)} | {min(most)})]
    if len(most) != 2:
        return same
    doubled = [sorted({k for k in DOUBLED if k <= one} | {one}) for one in most]
    return sorted({*same, *product(*doubled)})


def _shares(
    counts: Sequence[VoteCounts], each: Sequence[int], fold: np.ndarray, missing: str, seed: int
) -> Iterator[tuple[str, Sequence[Floats]]]:
    yield from decide(joint_table(counts, each)).items()
    if len(counts) > 1 and len(fold) > 1:
        yield "weighted", by_weight(counts, each, fold, weights_of(counts, fold))
    single = len(counts) == 1 and each[0] > 1 and missing == "abstain"
    if single and any(vote.logit is not None for vote in counts[0].votes):
        yield "logit", by_logit(counts[0], each[0], seed)


def deciding(sums: Sums) -> str:
    """The number that options are compared by."""
    balanced = METRICS["balanced_accuracy"](sums.total)
    return "balanced_accuracy" if balanced == balanced else "accuracy"


def estimates(options: Sequence[Option], first: Option, how: Intervals) -> list[Result]:
    """Numbers with intervals, and the gain over `first` on the same questions."""
    decides = deciding(first.sums)
    found: list[Result] = []
    for start in range(0, len(options), AT_ONCE):
        block = options[start : start + AT_ONCE]
        sums = first.sums
        statistics: dict[str, Statistic] = {}
        gains: dict[int, Statistic] = {}
        for number, option in enumerate(block):
            sums = sums.beside(option.sums, f"{number} ")
            names = option.sums.names
            for name in NUMBERS:
                statistics[f"{number} {name}"] = _of(METRICS[name], f"{number} ", names)
            gains[number] = _difference(METRICS[decides], f"{number} ", names)
        all_of = estimate_all(sums, statistics, how)
        gain_of = estimate_all(sums, {str(number): one for number, one in gains.items()}, how, plain=True)
        for number, option in enumerate(block):
            gain = gain_of[str(number)]
            found.append(
                Result(
                    option=option,
                    numbers={name: all_of[f"{number} {name}"] for name in NUMBERS},
                    gain=gain,
                    cost_of_a_point=_cost_of_a_point(option.cost - first.cost, gain.value),
                )
            )
    return found


def _cost_of_a_point(cost: float, gain: float) -> float:
    return float(ratio(np.float64(cost), np.float64(100 * gain if gain > 1e-9 else 0)))


def _of(statistic: Statistic, prefix: str, names: Sequence[str]) -> Statistic:
    return lambda s: statistic({name: s[prefix + name] for name in names})


def _difference(statistic: Statistic, prefix: str, names: Sequence[str]) -> Statistic:
    def gain(s: Columns) -> Floats:
        return statistic({name: s[prefix + name] for name in names}) - statistic(s)

    return gain
