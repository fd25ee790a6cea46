"""Inter-rater agreement: Cohen's kappa and Gwet's AC1, with bootstrap intervals.

For N items that both raters have marked, p_ij the share that the first put into category i and the second into j, and K
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

Degenerate cases: without marks all are None. Where both use only one and the same category, kappa is 0/0: None; AC1
is 1.

Sources: J. Cohen, A coefficient of agreement for nominal scales, 1960, doi:10.1177/001316446002000104. K. L. Gwet,
Computing inter-rater reliability and its variance in the presence of high agreement, 2008,
doi:10.1348/000711006X126600.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

__all__ = ["UNDEFINED", "Agreement", "Estimate", "ac1", "agreement", "kappa", "raw_agreement", "wilson"]

Array: TypeAlias = "np.ndarray[Any, Any]"
Counts: TypeAlias = "Sequence[Sequence[float]] | Array"
"""(K, K) how often the first rater said i and the second j."""

UNDEFINED = 0.05
"""No interval where more than this share of the resamples has no value: an interval of the rest would be too narrow."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its 95% interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of two raters."""

    number: int
    """Items that both have marked."""
    raw: Estimate
    kappa: Estimate
    ac1: Estimate


def raw_agreement(counts: Counts) -> float | None:
    """Share of items on which both say the same."""
    return _number(_raw(np.asarray(counts)))


def kappa(counts: Counts) -> float | None:
    """Cohen's kappa."""
    return _number(_kappa(np.asarray(counts)))


def ac1(counts: Counts) -> float | None:
    """Gwet's AC1."""
    return _number(_ac1(np.asarray(counts)))


def _number(value: Array) -> float | None:
    return None if np.isnan(value) else float(value)


def _raw(tables: Array) -> Array:
    """(..., K, K) counts to (...) values, as are the next two; NaN where undefined."""
    with np.errstate(invalid="ignore"):
        return tables.trace(axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1))


def _kappa(tables: Array) -> Array:
    first, second = _margins(tables)
    return _beyond(_raw(tables), (first * second).sum(axis=-1))


def _ac1(tables: Array) -> Array:
    first, second = _margins(tables)
    shares = (first + second) / 2
    return _beyond(_raw(tables), (shares * (1 - shares)).sum(axis=-1) / (tables.shape[-1] - 1))


def _margins(tables: Array) -> tuple[Array, Array]:
    """(..., K) shares of the categories, by each rater."""
    with np.errstate(invalid="ignore"):
        shares = tables / tables.sum(axis=(-2, -1), keepdims=True)
    return shares.sum(axis=-1), shares.sum(axis=-2)


def _beyond(observed: Array, chance: Array) -> Array:
    room = np.where(1 - chance < 1e-12, np.nan, 1 - chance)
    return (observed - chance) / room


def agreement(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    categories: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Compare the marks of two raters, item by item, with intervals of the percentile bootstrap.

    Args:
        first: (N,) marks.
        second: (N,) marks of the same items.
        categories: (K,) all that a rater could say, at least two; AC1 depends on them.
        clusters: (N,) cluster of each item; the bootstrap draws whole clusters, because answers to one prompt are
            correlated and worth less than as many independent ones. None: each item is a cluster.
        resamples: of the bootstrap; 0 for no intervals.
        seed: of the bootstrap.

    Raises:
        ValueError: lengths differ, a mark is not a category, or there are fewer than two categories.
    """
    place = {category: number for number, category in enumerate(categories)}
    if len(place) < 2 or not place.keys() >= {*first, *second}:
        raise ValueError(
            f"every mark has to be one of the categories, at least two; given: {list(categories)}"
        )
    size = len(place)
    cells = [place[a] * size + place[b] for a, b in zip(first, second, strict=True)]
    of_cluster: dict[Hashable, Counter[int]] = {}
    for cell, cluster in zip(cells, cells if clusters is None else clusters, strict=True):
        of_cluster.setdefault(cluster, Counter())[cell] += 1
    table = np.zeros((len(of_cluster), size * size), dtype=np.int64)
    for row, counted in zip(table, of_cluster.values(), strict=True):
        row[list(counted)] = list(counted.values())
    drawn = _resample(table, clusters is None, resamples if cells else 0, seed).reshape(-1, size, size)
    counts = table.sum(axis=0).reshape(size, size)
    return Agreement(
        number=len(cells),
        raw=_estimate(_raw, counts, drawn),
        kappa=_estimate(_kappa, counts, drawn),
        ac1=_estimate(_ac1, counts, drawn),
    )


def _resample(table: Array, alone: bool, resamples: int, seed: int) -> Array:
    """(resamples, K * K) counts of as many clusters as there are, drawn with replacement.

    Args:
        table: (C, K * K) counts of each cluster, or, if `alone`, of all items that are marked alike.
        alone: whether each item is a cluster of its own.
    """
    if not resamples:
        return table[:0]
    rng = np.random.default_rng(seed)
    if alone:
        number = int(table.sum())
        return rng.multinomial(number, table.sum(axis=1) / number, size=resamples) @ (table > 0)
    even = np.full(len(table), 1 / len(table))
    # a draw at a time: (resamples, clusters) may not fit into memory
    return np.array([rng.multinomial(len(table), even) @ table for _ in range(resamples)])


def _estimate(statistic: Callable[[Array], Array], counts: Array, drawn: Array) -> Estimate:
    value = _number(statistic(counts))
    values = statistic(drawn)
    values = np.sort(values[~np.isnan(values)])
    if value is None or not len(drawn) or len(values) < (1 - UNDEFINED) * len(drawn):
        return Estimate(value=value)
    low, high = (float(values[round(tail * (len(values) - 1))]) for tail in (0.025, 0.975))
    return Estimate(value=value, low=low, high=high)


def wilson(hits: int, number: int) -> Estimate:
    """A share and its 95% interval by Wilson's score, which is good for small numbers too.

        (p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n),  p = hits/n, z = 1.96

    Example: 9 of 10 is 0.9, 0.596 to 0.982. Source: E. B. Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    if not number:
        return Estimate(value=None)
    share, z = hits / number, NormalDist().inv_cdf(0.975)
    middle = share + z * z / (2 * number)
    reach = z * (share * (1 - share) / number + z * z / (4 * number**2)) ** 0.5
    scale = 1 + z * z / number
    return Estimate(
        value=share, low=max(0.0, (middle - reach) / scale), high=min(1.0, (middle + reach) / scale)
    )
