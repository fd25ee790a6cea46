"""How far two raters agree beyond chance: Cohen's kappa and Gwet's AC1, with bootstrap intervals.

For N things that both have marked, p_ij the share that the first put into category i and the second into j, and K
categories:

    agreement  p_a   = sum_i p_ii
    kappa            = (p_a - p_e) / (1 - p_e),  p_e = sum_i p_i. p_.i                          Cohen 1960
    AC1              = (p_a - p_e) / (1 - p_e),  p_e = 1/(K - 1) sum_i q_i (1 - q_i),
                                                 q_i = (p_i. + p_.i) / 2                        Gwet 2008

Where nearly everything is in one category, as with traces of which 1% are anomalous, kappa falls to 0 and below though
the raters hardly ever differ; AC1 does not. Read them together.

Example: both say fluent 118 times, only the first 5 times, only the second twice, and never do both say anomalous:
counts [[118, 5], [2, 0]]. p_a = 118/125 = 0.944. kappa: p_e = 0.984 * 0.96 + 0.016 * 0.04 = 0.94528, so -0.0234.
AC1: q = (0.972, 0.028), p_e = 2 * 0.972 * 0.028 = 0.0544, so 0.9408.

Degenerate cases: with no marks there is nothing to say, and all are None. Where both use one and the same category
only, kappa is 0/0: None; AC1 is 1.

Sources: J. Cohen, A coefficient of agreement for nominal scales, 1960, doi:10.1177/001316446002000104. K. L. Gwet,
Computing inter-rater reliability and its variance in the presence of high agreement, 2008,
doi:10.1348/000711006X126600.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pv_rl.errors import SetupError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Agreement", "Estimate", "ac1", "agreement", "kappa", "raw_agreement", "wilson"]

Counts: TypeAlias = "Sequence[Sequence[float]] | np.ndarray[Any, Any]"
"""(K, K) how often the first rater said i and the second j."""

UNDEFINED = 0.05
"""No interval is given where more than this share of the resamples has no value: what is left would be too friendly."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its 95% interval; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Of two raters."""

    number: int
    """Things that both have marked."""
    raw: Estimate
    kappa: Estimate
    ac1: Estimate


def raw_agreement(counts: Counts) -> float | None:
    """Share on which both say the same."""
    total = sum(map(sum, counts))
    return sum(row[i] for i, row in enumerate(counts)) / total if total else None


def kappa(counts: Counts) -> float | None:
    """Cohen's kappa."""
    first, second = _margins(counts)
    if first is None or second is None:
        return None
    return _beyond(raw_agreement(counts), sum(p * q for p, q in zip(first, second, strict=True)))


def ac1(counts: Counts) -> float | None:
    """Gwet's AC1."""
    first, second = _margins(counts)
    if first is None or second is None:
        return None
    shares = [(p + q) / 2 for p, q in zip(first, second, strict=True)]
    return _beyond(raw_agreement(counts), sum(q * (1 - q) for q in shares) / (len(shares) - 1))


def agreement(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    categories: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Compare the marks of two raters, thing by thing; intervals are of the percentile bootstrap.

    Args:
        first: (N,) marks.
        second: (N,) marks of the same things.
        categories: (K,) all that a rater could say, at least two; it matters for AC1.
        clusters: (N,) which things belong together: whole clusters are drawn, because answers to one prompt resemble
            one another and are worth less than as many independent ones. None: each stands alone.
        resamples: of the bootstrap.
        seed: likewise.

    Raises:
        ValueError: lengths differ, a mark is no category, or there are fewer than two.
        SetupError: numpy is missing.
    """
    place = {category: number for number, category in enumerate(categories)}
    if len(place) < 2 or not place.keys() >= {*first, *second}:
        raise ValueError(f"marks have to be of the categories, at least two; given: {list(categories)}")
    size = len(place)
    alone = clusters is None
    of_cluster: dict[Hashable, Counter[int]] = {}
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        cell = place[a] * size + place[b]
        of_cluster.setdefault(cell if alone else clusters[number], Counter())[cell] += 1
    total: Counter[int] = Counter()
    for cells in of_cluster.values():
        total.update(cells)
    counts = [[total[row * size + column] for column in range(size)] for row in range(size)]
    tables = _resample(list(of_cluster.values()), size, alone, resamples, seed) if total else []
    return Agreement(
        number=total.total(),
        raw=_estimate(raw_agreement, counts, tables),
        kappa=_estimate(kappa, counts, tables),
        ac1=_estimate(ac1, counts, tables),
    )


def _margins(counts: Counts) -> tuple[list[float] | None, list[float] | None]:
    total = sum(map(sum, counts))
    if not total:
        return None, None
    rows = [sum(row) / total for row in counts]
    return rows, [sum(column) / total for column in zip(*counts, strict=True)]


def _beyond(observed: float | None, chance: float) -> float | None:
    if observed is None or 1 - chance < 1e-12:
        return None
    return (observed - chance) / (1 - chance)


def _resample(clusters: Sequence[Counter[int]], size: int, alone: bool, resamples: int, seed: int) -> Any:
    """(resamples, K, K) counts of as many clusters, drawn with replacement."""
    try:
        import numpy as np
    except ImportError as error:
        raise SetupError(
            f"intervals need numpy, which cannot be imported ({error}): pip install numpy"
        ) from error
    counts = np.zeros((len(clusters), size * size), dtype=np.int64)
    for number, cells in enumerate(clusters):
        counts[number, list(cells)] = list(cells.values())
    rng = np.random.default_rng(seed)
    if alone:  # what is alike was put together: draw how often each comes
        number = int(counts.sum())
        drawn = rng.multinomial(number, counts.sum(axis=1) / number, size=resamples)
        return (drawn @ (counts > 0)).reshape(resamples, size, size)
    even = np.full(len(clusters), 1 / len(clusters))
    rows = [rng.multinomial(len(clusters), even) @ counts for _ in range(resamples)]
    return np.array(rows).reshape(resamples, size, size)


def _estimate(statistic: Callable[[Counts], float | None], counts: Counts, tables: Any) -> Estimate:
    value = statistic(counts)
    if value is None:
        return Estimate(value=None)
    values = sorted(v for table in tables if (v := statistic(table.tolist())) is not None)
    if len(values) < (1 - UNDEFINED) * len(tables):
        return Estimate(value=value)
    last = len(values) - 1
    return Estimate(value=value, low=values[round(0.025 * last)], high=values[round(0.975 * last)])


def wilson(hits: int, number: int) -> Estimate:
    """A share and its 95% interval by Wilson's score, which holds for small numbers too.

        (p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n),  p = hits/n, z = 1.96

    Example: 9 of 10 is 0.9, 0.596 to 0.982. Source: E. B. Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    if not number:
        return Estimate(value=None)
    share, z = hits / number, 1.959964
    middle = share + z * z / (2 * number)
    reach = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number**2))
    scale = 1 + z * z / number
    return Estimate(
        value=share, low=max(0.0, (middle - reach) / scale), high=min(1.0, (middle + reach) / scale)
    )
