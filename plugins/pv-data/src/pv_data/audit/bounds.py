"""What a sample says about the share of proofs whose label a human agrees with. Exact at any size.

Clopper and Pearson, Biometrika 26 (1934) 404. They hold for proofs that were drawn independently of each other; proofs
of the same question were not (`pv_data.audit.clusters`), nor is the worst of many slices (`simultaneous`).
"""

from __future__ import annotations

from pv_data.audit.counts import share, tally
from pv_data.audit.finite import fewest, most

__all__ = ["interval", "lower_bound", "upper_bound"]


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
    return fewest(right, read, size, miss) / size if size else beta_lower(right, read, miss)


def upper_bound(
    agree: int, checked: int, confidence: float = 0.90, *, population: int | None = None
) -> float:
    """The one-sided exact upper bound: `1 - lower_bound(checked - agree, checked)`. 3 of 30 gives 0.2093."""
    right, read, size = tally(agree, checked, population)
    miss = 1 - share("confidence", confidence)
    return most(right, read, size, miss) / size if size else 1 - beta_lower(read - right, read, miss)


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
