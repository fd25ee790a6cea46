"""Formula names: which formula, times which scale, gives the updates that were cut alike.

Gradients are compared and not weights, because rows with a small gradient carry more rounding error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effective_weights import FORMULAS, Update, solve_weights
from torch import Tensor

__all__ = ["EXACT", "Finding", "Fits", "fit_formulas", "name_formulas"]

EXACT = 1e-4
"""Relative error below which a formula is the one that was measured; wrong ones differ by more than 1e-2."""


@dataclass(frozen=True)
class Finding:
    """The formula of some updates that were cut alike."""

    formula: str
    """One of the names that were tried; where none is exact, the one that was meant or comes nearest."""
    scale: str
    """By which it is multiplied, for example `1/M`; a range where it is no expression that is known."""
    error: float
    """Of formula times scale, relative, worst update; inf for one that is only near."""


def fit_scale(update: Update, formula: str) -> tuple[float, float]:
    """The scale of a formula that comes nearest to an update, and the relative error that is left."""
    weights = update.weights(formula)
    if weights is None:
        return math.nan, math.inf
    expected = weights @ update.row_gradients
    scale = float(expected @ update.gradient / (expected @ expected))
    return scale, float((update.gradient - scale * expected).norm() / update.gradient.norm())


Fits = dict[str, tuple[float, Finding]]
"""The formulas that give some updates, with how complicated each scale is; if none does, the global ones as ranges."""

RANGE = 9.0
"""How complicated a scale is that is no expression."""

UNEQUAL = Finding("", "", math.inf)
"""The tokens of a row have different weights."""


def fit_formulas(updates: Sequence[Update], meant: str = "") -> Fits:
    """The formulas that all of these updates have, each with its own scale.

    Args:
        updates: cut in the same way, of several steps.
        meant: a spec to try first.
    """
    meant = {"dr_grpo:1": "luspo"}.get(meant.removesuffix("@batch"), meant)
    specs = [meant, "" if "@" in meant or meant in FORMULAS else f"{meant}@batch"] if meant else []
    tried = list(dict.fromkeys([*filter(None, specs), *FORMULAS]))
    fits = {formula: [fit_scale(update, formula) for update in updates] for formula in tried}
    found: Fits = {}
    for formula, fit in fits.items():
        error = max(error for _, error in fit)
        if error <= EXACT:
            expression, cost = name_scale(updates, [scale for scale, _ in fit], formula)
            found[formula] = cost + 2 * (" " in formula), Finding(formula, expression, error)
    if found:
        return found
    solved = [solve_weights(update.row_gradients, update.gradient) for update in updates]
    if max(residual for _, residual in solved) > EXACT:
        return {"": (2 * RANGE, UNEQUAL)}
    ranges = {
        formula: _range_of(updates, [weights for weights, _ in solved], formula)
        for formula in tried
        if " " not in formula
    }
    return {formula: (2 * RANGE, Finding(formula, text, math.inf)) for formula, text in ranges.items()}


def name_formulas(fits: Mapping[str, Fits]) -> dict[str, Finding]:
    """One formula for all cuts as far as there is one: a finding for each cut.

    Args:
        fits: of each cut. The formula is the one that is exact without a scale in the most cuts, then with one.
    """
    tried = dict.fromkeys(formula for found in fits.values() for formula in found)

    def exact(formula: str, bound: float) -> int:
        return sum(found[formula][0] < bound for found in fits.values() if formula in found)

    main = max(tried, key=lambda formula: (exact(formula, 0.1), exact(formula, RANGE)))

    def chosen(found: Fits) -> Finding:
        simplest = min(found.values(), key=lambda fit: fit[0])
        return min(found.get(main, simplest), simplest, key=lambda fit: fit[0] >= RANGE)[1]

    return {cut: chosen(found) for cut, found in fits.items()}


def name_scale(updates: Sequence[Update], scales: Sequence[float], formula: str) -> tuple[str, float]:
    """An expression that has these values, and how complicated it is; else their range, which costs most."""
    values = [_cuts(update) | update.numbers() for update in updates]
    cuts = ("R", "A", "M")
    counts = [name for name in values[0] if name not in cuts]
    by_prompt = formula in ("dapo", "grpo", "ba")
    best: dict[str, float] = {}
    for power, count, sign in itertools.product(
        itertools.product((0, 1, -1), repeat=len(cuts)), ["", *counts], (1, -1)
    ):
        parts = dict(reversed([*zip(cuts, power, strict=True)])) | ({count: sign} if count else {})
        parts = {name: exponent for name, exponent in parts.items() if exponent}
        expected = [math.prod(value[name] ** e for name, e in parts.items()) for value in values]
        if all(math.isclose(*pair, rel_tol=EXACT) for pair in zip(expected, scales, strict=True)):
            cost = len(parts) + 0.5 * bool(count) + 0.1 * (count.startswith("(P") != by_prompt) * bool(count)
            best.setdefault(_write(parts), cost)
    if best:
        return min(best.items(), key=lambda item: item[1])
    return _range(scales), RANGE


def _cuts(update: Update) -> dict[str, float]:
    micro_batches = len([part for part in update.micro_batches or [] if part]) / update.ranks
    return {"M": update.updates, "A": micro_batches or math.nan, "R": update.ranks}


def _write(parts: Mapping[str, int]) -> str:
    above = " ".join(name for name, exponent in parts.items() if exponent > 0)
    below = " ".join(name for name, exponent in parts.items() if exponent < 0)
    if not below:
        return above or "1"
    return f"{above or '1'} / {below}" if " " not in below else f"{above or '1'} / ({below})"


def _range_of(updates: Sequence[Update], solved: Sequence[Tensor], formula: str) -> str:
    """The measured weights of rows over those of a formula, from the smallest to the largest."""
    ratios = []
    for update, measured in zip(updates, solved, strict=True):
        expected = update.weights(formula)
        assert expected is not None
        kept = (expected != 0) & ~measured.isnan()
        ratios += (measured[kept] / expected[kept]).tolist()
    return _range(ratios)


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"
