"""How far any number of raters agree on yes or no, from counts alone, so that no table of votes is held.

Item i has r_i votes, r_ik of them for category k (yes, no); items with one vote or none say nothing.

    agreement  p_a   = mean_i sum_k r_ik (r_ik - 1) / (r_i (r_i - 1))     chance that two votes on an item are the same
    pi_k             = mean_i r_ik / r_i
    Fleiss     kappa = (p_a - p_e) / (1 - p_e),  p_e = sum_k pi_k^2                          Fleiss 1971
    Gwet       AC1   = (p_a - p_e) / (1 - p_e),  p_e = sum_k pi_k (1 - pi_k)                 Gwet 2008, two categories
    Krippendorff     = 1 - D_o / D_e             D_o = 1 - sum_k o_kk / n,  o_kk = sum_i r_ik (r_ik - 1) / (r_i - 1)
               alpha                             D_e = 1 - sum_k n_k (n_k - 1) / (n (n - 1)),  n_k = sum_i r_ik
    on k             = o_kk / n_k                given a vote for k, the chance that another one is for k too

Where nearly all votes are yes, kappa and alpha fall to 0 though the raters hardly differ; AC1 does not. Read them
together. All take raters for exchangeable and independent: votes of one model, asked thrice, are not, and agree for
reasons that have nothing to do with the truth.

Example: four items, five votes each, yes 5, 5, 3, 0. p_a = (1 + 1 + 0.4 + 1)/4 = 0.85, pi = (0.65, 0.35).
kappa: p_e = 0.545, so 0.670. AC1: p_e = 0.455, so 0.725. alpha: o = (11.5, 5.5), n = 20, D_o = 0.15,
D_e = 1 - (13 * 12 + 7 * 6)/380 = 0.479, so 0.687. On yes 11.5/13 = 0.885, on no 5.5/7 = 0.786.

Sources: J. Fleiss 1971, doi:10.1037/h0031619; K. Gwet 2008, doi:10.1348/000711006X126600; K. Krippendorff, Content
Analysis, 2004. The libraries that have these (krippendorff, irrCAC, statsmodels) want all votes as one table in memory,
and none has all three; the tests hold these formulas to the first two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Raters", "raters"]


@dataclass(frozen=True, kw_only=True)
class Raters:
    """None where a number is not defined: no item with two votes, or all votes the same (0/0)."""

    items: int
    """With at least two votes."""
    votes: int
    """On these."""
    raw: float | None = None
    kappa: float | None = None
    alpha: float | None = None
    ac1: float | None = None
    on_true: float | None = None
    on_false: float | None = None


def raters(patterns: Mapping[tuple[int, int], int]) -> Raters:
    """From `{(votes for yes, votes): items}`."""
    usable = {(yes, votes): items for (yes, votes), items in patterns.items() if votes > 1 and items}
    number = sum(usable.values())
    total = sum(votes * items for (_, votes), items in usable.items())
    if not number:
        return Raters(items=0, votes=0)
    raw = pi = same_yes = same_no = count = 0.0
    for (yes, votes), items in usable.items():
        no = votes - yes
        raw += items * (yes * (yes - 1) + no * (no - 1)) / (votes * (votes - 1))
        pi += items * yes / votes
        same_yes += items * yes * (yes - 1) / (votes - 1)
        same_no += items * no * (no - 1) / (votes - 1)
        count += items * yes
    raw, pi, other = raw / number, pi / number, total - count
    expected = 1 - (count * (count - 1) + other * (other - 1)) / (total * (total - 1))
    return Raters(
        items=number,
        votes=total,
        raw=raw,
        kappa=_beyond(raw, pi**2 + (1 - pi) ** 2),
        alpha=1 - (1 - (same_yes + same_no) / total) / expected if expected > 1e-12 else None,
        ac1=_beyond(raw, 2 * pi * (1 - pi)),
        on_true=same_yes / count if count else None,
        on_false=same_no / other if other else None,
    )


def _beyond(observed: float, chance: float) -> float | None:
    return (observed - chance) / (1 - chance) if 1 - chance > 1e-12 else None
