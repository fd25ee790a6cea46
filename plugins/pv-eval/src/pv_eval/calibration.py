"""Calibration: is the share of accepting votes the probability that the proof is right? Brier score and ECE.

The share of pair i is v_i = a_i / (a_i + r_i): votes without a verdict do not count, and a pair without any verdict is
left out and counted. y_i is 1 for a right proof, w_i the weight.

    Brier = sum_i w_i (v_i - y_i)^2 / sum_i w_i          0 is perfect; always saying one half gives 0.25
    ECE   = sum_b |sum_{i in b} w_i (v_i - y_i)| / sum_i w_i

over B bins of equal width, [0, 1/B), [1/B, 2/B), ..., the last with its upper end; B = 10. An ECE is never negative, so
in small samples it is too high even for a calibrated verifier, the more so the more bins; compare it only between
verifiers on the same pairs.

Example: shares 0.75 and 0.7 of two right proofs, 0.75 of a wrong one, 0.0 of a wrong one, 10 bins. Bin [0.7, 0.8) has
sums of v 2.2 and of y 2, bin [0, 0.1) has 0 and 0: ECE = 0.2/4 = 0.05. Brier = (0.0625 + 0.09 + 0.5625 + 0)/4 = 0.179.

Source: M. Naeini et al. 2015 (ECE), doi:10.1609/aaai.v29i1.9602; G. Brier 1950.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pv_eval.counts import Columns, Floats, Statistic, VoteCounts, quotient, ratio, sum_by_question
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_rl.errors import ConfigError

__all__ = ["BINS", "Bin", "Calibration", "calibration", "vote_share"]

BINS = 10


@dataclass(frozen=True, kw_only=True)
class Bin:
    """One line of a reliability table."""

    low: float
    high: float
    pairs: int
    share: float
    """Mean share of accepting votes."""
    right: Estimate
    """Share of right proofs. Where all or none are right, the interval is exact over the bin's questions: proofs of one
    question are correlated, so they count once. A note gives the number of questions."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    brier: Estimate
    ece: Estimate
    bins: tuple[Bin, ...]
    """Those with a pair."""
    number_of_bins: int
    left_out: int
    """Pairs without a verdict in any vote."""


def vote_share(counts: VoteCounts) -> Floats:
    """(P,) v_i, NaN where there is no verdict."""
    return ratio(counts.accepted, counts.accepted + counts.rejected)


def calibration(counts: VoteCounts, how: Intervals, bins: int = BINS) -> Calibration:
    """Measure the calibration.

    Raises:
        ConfigError: fewer than 1 or more than 100 bins.
    """
    if type(bins) is not int or not 1 <= bins <= 100:
        raise ConfigError(f"bins={bins!r}; an ECE has 1 to 100 bins, usually 10")
    share = vote_share(counts)
    known = ~np.isnan(share)
    filled, label = np.where(known, share, 0.0), counts.label.astype(float)
    # 1e-9: 0.29 * 100 is 28.999999999999996, and belongs to bin 29
    place = np.where(known, np.minimum(np.floor(filled * bins + 1e-9), bins - 1), -1).astype(int)
    used = sorted(set(place[known].tolist()))
    by_pair: dict[str, Floats] = {"known": known.astype(float), "square": known * (filled - label) ** 2}
    statistics: dict[str, Statistic] = {
        "brier": quotient("square", "known"),
        "ece": lambda s: ratio(_gaps(s, used), s["known"]),
    }
    for number in used:
        inside = place == number
        by_pair |= {f"pairs {number}": inside * 1.0, f"share {number}": inside * filled}
        by_pair[f"right {number}"] = inside * label
        statistics[f"right {number}"] = quotient(f"right {number}", f"pairs {number}")
    sums = sum_by_question(counts, by_pair)
    found = estimate_all(sums, statistics, how)
    total = sums.total
    return Calibration(
        brier=found["brier"],
        ece=found["ece"],
        bins=tuple(
            Bin(
                low=number / bins,
                high=(number + 1) / bins,
                pairs=int((place == number).sum()),
                share=float(ratio(total[f"share {number}"], total[f"pairs {number}"])),
                right=found[f"right {number}"],
            )
            for number in used
        ),
        number_of_bins=bins,
        left_out=int((~known).sum()),
    )


def _gaps(s: Columns, used: list[int]) -> Floats:
    gaps = (np.abs(s[f"share {number}"] - s[f"right {number}"]) for number in used)
    return sum(gaps, np.zeros_like(s["known"]))
