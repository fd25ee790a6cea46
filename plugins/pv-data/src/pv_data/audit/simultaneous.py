"""Many slices at once: bounds that hold for all of them together, and which slices are above a threshold.

Of 18 bounds at 90% each, one or two are wrong on average. Two ways to mean all of them:

- `simultaneous_lower_bounds`: a bound a slice, all true together with the confidence. Sidak's
  `1 - (1 - miss)^(1/S)` a slice is exact for slices audited independently, so no other equal split is tighter;
  Bonferroni's `miss / S` needs no independence and costs next to nothing more.
- `slices_above`: for the one question "which slices reach this agreement?", Holm's step-down test finds every slice
  that Bonferroni's bounds show to be above, and often more (Holm, Scand. J. Statist. 6 (1979) 65).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pv_data.audit.bounds import lower_bound
from pv_data.audit.counts import share, tally
from pv_rl.errors import ConfigError

__all__ = ["Method", "confidence_each", "simultaneous_lower_bounds", "slices_above"]

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
