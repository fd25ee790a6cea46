"""Exact bounds of an agreement: Clopper-Pearson, hypergeometric, and bounds for many slices at once.

Clopper and Pearson, Biometrika 26 (1934) 404. They hold for proofs that were drawn independently of each other;
proofs of the same question were not (`pv_data.audit.clusters`).

Of 18 bounds at 90% each, one or two are wrong on average. There are two ways to make a statement about all of them:

- `simultaneous_lower_bounds`: a bound for each slice, all true together with the confidence. Sidak's
  `1 - (1 - miss)^(1/S)` a slice is exact for slices audited independently, so no other equal split is tighter;
  Bonferroni's `miss / S` needs no independence and costs next to nothing more.
- `slices_above`: which slices reach an agreement? Holm's step-down test finds every slice that Bonferroni's bounds show
  to be above, and often more (Holm, Scand. J. Statist. 6 (1979) 65).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pv_data.audit.counts import share, tally
from pv_rl.errors import ConfigError

__all__ = [
    "Method",
    "confidence_each",
    "interval",
    "lower_bound",
    "simultaneous_lower_bounds",
    "slices_above",
    "upper_bound",
]


def lower_bound(
    agree: int, checked: int, confidence: float = 0.90, *, population: int | None = None
) -> float:
    """The one-sided exact lower bound of the agreement.

    The agreement p at which `agree` or more of `checked` have probability `1 - confidence`:
    `BetaInv(1 - confidence; agree, checked - agree + 1)`, and 0 where none agree or none were checked.

    Example: 27 of 30 gives 0.7907, 14 of 15 gives 0.7644, 373 of 396 gives 0.9238.

    Args:
        agree: proofs where the human mark is the label.
        checked: proofs with a human mark.
        confidence: the chance, at least, that the bound is not above the truth.
        population: proofs there are in all, where the sample is a good part of them; then the bound is about these,
            by the hypergeometric distribution, and a multiple of `1 / population`. None: as if there were no end.

    Raises:
        DataError: counts that do not fit each other.
        ConfigError: a confidence that is no probability.
    """
    right, read, size = tally(agree, checked, population)
    miss = 1 - share("confidence", confidence)
    return _fewest(right, read, size, miss) / size if size else beta_lower(right, read, miss)


def upper_bound(
    agree: int, checked: int, confidence: float = 0.90, *, population: int | None = None
) -> float:
    """The one-sided exact upper bound: `1 - lower_bound(checked - agree, checked)`. 3 of 30 gives 0.2093."""
    right, read, size = tally(agree, checked, population)
    miss = 1 - share("confidence", confidence)
    return _most(right, read, size, miss) / size if size else 1 - beta_lower(read - right, read, miss)


def interval(
    agree: int, checked: int, confidence: float = 0.90, *, population: int | None = None
) -> tuple[float, float]:
    """The two-sided exact interval, half of the error on each side. 27 of 30 gives (0.7614, 0.9722)."""
    side = 1 - (1 - share("confidence", confidence)) / 2
    return (
        lower_bound(agree, checked, side, population=population),
        upper_bound(agree, checked, side, population=population),
    )


def beta_lower(agree: float, checked: float, miss: float) -> float:
    """The bound for counts that need not be whole (an effective sample), with `miss` the chance to be wrong."""
    from scipy.special import betaincinv

    return float(betaincinv(agree, checked - agree + 1, miss)) if agree > 0 else 0.0


def _fewest(agree: int, checked: int, population: int, miss: float) -> int:
    """The fewest proofs of the population that may agree: the smallest K with `P(X >= agree | K) > miss`.

    Example: 2 of 2 checked, of 4, at `miss` 0.2: K = 2 gives 1/6, K = 3 gives 3/6. So 3.
    """
    from scipy.stats import hypergeom

    low, high = agree, population - (checked - agree)  # what the sample itself leaves possible
    while low < high:  # the probability grows with K
        middle = (low + high) // 2
        if hypergeom.sf(agree - 1, population, middle, checked) > miss:
            high = middle
        else:
            low = middle + 1
    return low


def _most(agree: int, checked: int, population: int, miss: float) -> int:
    """The most that may agree: all but the fewest that may disagree."""
    return population - _fewest(checked - agree, checked, population, miss)


Method = Literal["sidak", "bonferroni"]


def confidence_each(confidence: float, slices: int, method: Method = "sidak") -> float:
    """The confidence of one bound, for `slices` of them to hold together.

    Example: 0.9 for 18 slices is 0.99416 each by sidak, 0.99444 by bonferroni.

    Raises:
        ConfigError: a method or a confidence that is none.
    """
    miss = 1 - share("confidence", confidence)
    if method == "sidak":
        return (1 - miss) ** (1 / max(slices, 1))
    if method == "bonferroni":
        return 1 - miss / max(slices, 1)
    raise ConfigError(
        f"method is {method!r}; give sidak (slices audited independently) or bonferroni (any slices)"
    )


def simultaneous_lower_bounds(
    slices: Mapping[str, tuple[int, int]],
    confidence: float = 0.90,
    *,
    method: Method = "sidak",
    populations: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """A lower bound a slice, all of them true together with the confidence.

    Args:
        slices: agree and checked of each. Count every slice whose bound is looked at, discarded ones too: to keep only
            those that came out well is to choose by the numbers that the bounds are made of.
        confidence: of all together.
        method: `sidak` or `bonferroni`.
        populations: proofs there are in a slice, where the end of it counts.
    """
    each = confidence_each(confidence, len(slices), method)
    sizes = populations or {}
    return {
        name: lower_bound(agree, checked, each, population=sizes.get(name))
        for name, (agree, checked) in slices.items()
    }


def slices_above(
    slices: Mapping[str, tuple[int, int]], threshold: float, confidence: float = 0.90
) -> frozenset[str]:
    """The slices shown to agree in more than `threshold`: with the confidence, none of them is named wrongly.

    Holm: order by p-value `P(Bin(checked, threshold) >= agree)`; the i-th smallest (from 0) must be at most
    `miss / (S - i)`, and the first that is not ends the list. Valid however the slices depend on each other.
    """
    from scipy.special import bdtrc

    miss, level = 1 - share("confidence", confidence), share("threshold", threshold)
    chance = {}
    for name, (agree, checked) in slices.items():
        right, read, _ = tally(agree, checked)
        chance[name] = float(bdtrc(right - 1, read, level)) if right else 1.0
    above = set()
    for place, name in enumerate(sorted(chance, key=lambda name: (chance[name], name))):
        if chance[name] > miss / (len(chance) - place):
            break
        above.add(name)
    return frozenset(above)
