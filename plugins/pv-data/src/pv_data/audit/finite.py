"""The bounds where the proofs have an end: the hypergeometric distribution, inverted.

A slice of 30 of which all 30 were read is known, whatever Clopper and Pearson say. Valid for a sample without
replacement in which each set of proofs was as likely as any other.
"""

from __future__ import annotations

__all__ = ["fewest", "most"]


def fewest(agree: int, checked: int, population: int, miss: float) -> int:
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


def most(agree: int, checked: int, population: int, miss: float) -> int:
    """The most that may agree: all but the fewest that may disagree."""
    return population - fewest(checked - agree, checked, population, miss)
