"""The fixed grid: named cases, one family an axis, and one in which everything is cut at once."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from typing import Any

from grid.cases import Case
from grid.oracle import Loss

SPECS = [
    name + scope
    for scope in ("", "@batch")
    for name in ("grpo", "dapo", "balanced:0", "balanced:0.3", "balanced:0.6", "balanced:1")
]
FEW = ["grpo", "dapo", "balanced:0.3", "balanced:0.6@batch"]
OTHERS = ["dr_grpo:250", "dr_grpo:250@batch", "vl_norm:0.75:250", "vl_norm:1:250@batch"]
SIGNED = ["ba", "ba@batch"]
TWO = ["balanced:0.6", "dapo@batch"]

POLICIES = [Loss(policy=policy) for policy in ("vanilla", "gspo", "gpg", "cispo")]
TERMS = [
    Loss(kl="k1", kl_coef=0.05),
    Loss(kl="mse", kl_coef=0.05),
    Loss(kl="low_var_kl", kl_coef=0.05),
    Loss(entropy_coeff=0.02),
    Loss(policy="gspo", kl="low_var_kl", kl_coef=0.05, entropy_coeff=0.02, clip_high=0.28),
]


def draw_lengths(seed: int, sizes: Iterable[int], *, longest: int = 250, tail: str = "log-normal") -> Any:
    """Response lengths from 1 to `longest`, a tuple a prompt: most are short, some are very long."""
    draw = random.Random(seed)

    def length() -> int:
        value = draw.lognormvariate(3, 1.2) if tail == "log-normal" else 10 * draw.paretovariate(0.8)
        return max(1, min(longest, int(value)))

    return tuple(tuple(length() for _ in range(size)) for size in sizes)


def cross(family: str, sizes: Iterable[int] = (4, 4, 4), *, longest: int = 250, **axes: Any) -> list[Case]:
    """One case for each combination; an axis is a list, anything else is the same for all."""
    free = {name: values for name, values in axes.items() if isinstance(values, list)}
    fixed = {name: value for name, value in axes.items() if name not in free}
    cases = []
    for number, combination in enumerate(itertools.product(*free.values())):
        chosen = dict(zip(free, combination, strict=True))
        name = ", ".join(f"{axis}={describe(value)}" for axis, value in chosen.items())
        settings: dict[str, Any] = {
            "groups": draw_lengths(len(family), sizes, longest=longest),
            **fixed,
            **chosen,
        }
        cases.append(Case(family=family, name=name, seed=len(family) + number // 4, **settings))
    return cases


def describe(value: object) -> str:
    if not isinstance(value, Loss):
        return str(value)
    terms = [value.policy]
    if value.kl:
        terms.append(f"{value.kl_coef} {value.kl}")
    if value.entropy_coeff:
        terms.append(f"{value.entropy_coeff} entropy")
    return " + ".join(terms)


def everything_at_once(count: int) -> list[Case]:
    """Seeded combinations of every axis."""
    return [_mixed(seed) for seed in range(count)]


def _mixed(seed: int) -> Case:
    draw = random.Random(seed)
    sizes = [draw.choice([1, 2, 4, 4, 6]) for _ in range(draw.randint(2, 5))]
    groups = draw_lengths(100 + seed, sizes, tail=draw.choice(["log-normal", "pareto"]))
    rows = sum(sizes)
    abstained = set(draw.sample(range(rows), rows // 5))
    if draw.random() < 0.3:  # the last prompt as a whole
        abstained |= set(range(rows - sizes[-1], rows))
    ranks = draw.choice([1, 2, 4])
    kl = draw.choice([None, "k1", "low_var_kl"])
    loss = Loss(
        policy=draw.choice(["vanilla", "gspo", "gpg", "cispo"]),
        clip_high=draw.choice([0.2, 0.28]),
        kl=kl,
        kl_coef=0.05 if kl else 0.0,
        entropy_coeff=draw.choice([0.0, 0.02]),
    )
    return Case(
        family="everything at once",
        name=f"draw {seed}",
        groups=groups,
        spec=SPECS[seed % len(SPECS)],
        loss=loss,
        is_weights=draw.random() < 0.5,
        abstained=tuple(sorted(abstained)),
        holes=draw.choice([0.0, 0.3]),
        ranks=ranks,
        mini_rows=math.ceil(rows / draw.choice([1, 2, 4])),
        micro_rows=draw.choice([None, 1, 2, 3]),
        micro_tokens=draw.choice([260, 600]),
        balance=draw.random() < 0.5,
        shuffle=draw.random() < 0.5,
        epochs=draw.choice([1, 1, 2]),
        seed=seed,
    )


def fixed_grid() -> list[Case]:
    half = {"mini_rows": 6}
    return [
        *cross("not cut", spec=SPECS),
        *cross("micro-batches of a fixed size", spec=FEW, micro_rows=[1, 2, 3]),
        *cross("micro-batches by tokens", spec=FEW, micro_tokens=[260, 500]),
        *cross("mini-batches", spec=FEW, mini_rows=[6, 3], micro_tokens=300),
        *cross("data-parallel ranks", spec=FEW, ranks=[2, 4], micro_rows=1),
        *cross("length balancing", spec=FEW, ranks=[2, 4], balance=True, micro_tokens=300),
        *cross("shuffling, two epochs", spec=FEW, ranks=[1, 2], shuffle=True, epochs=2, micro_rows=1, **half),
        *cross("uneven groups", (1, 7, 2, 5, 1), spec=FEW, ranks=2, micro_rows=[1, 4]),
        *cross("lengths up to 4000", (3, 3), spec=FEW, groups=TO_4000, ranks=2, micro_tokens=4200),
        *cross("tool tokens within a response", spec=FEW, holes=0.3, micro_rows=[1, 3], ranks=2),
        *cross("padding rows", (4, 4, 3), spec=FEW, mini_rows=[4, 8], ranks=2, micro_rows=1),
        *cross("abstained rows", spec=FEW, ranks=[1, 2], abstained=(1, 5, 6), micro_rows=1, **half),
        *cross(
            "whole groups abstained", spec=FEW, ranks=[1, 2], abstained=(4, 5, 6, 7), micro_tokens=300, **half
        ),
        *cross("Dr. GRPO and VL-Norm", spec=OTHERS, ranks=[1, 2], abstained=(1, 5), micro_rows=1, **half),
        *cross("Balanced Aggregation", spec=SIGNED, ranks=[1, 2], abstained=(1, 5), micro_rows=1, **half),
        *cross("policy losses", loss=POLICIES, spec=TWO, ranks=2, micro_rows=1, **half),
        *cross("KL and entropy terms", loss=TERMS, spec=TWO, ranks=2, micro_rows=1, **half),
        *cross("rollout_is_weights", loss=POLICIES, spec=TWO, is_weights=True, ranks=2, micro_rows=1, **half),
        *everything_at_once(36),
    ]


TO_4000 = ((4000, 3, 40), (700, 1, 4000))
