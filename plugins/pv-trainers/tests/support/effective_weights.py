"""Effective weights: which weight an update gave to each row, and which formula and scale that is.

The gradient of an update is linear in the rows' gradients, so a least-squares fit gives the weights. A formula is named
by comparing gradients and not weights, because rows with a small gradient carry more rounding error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from grid.oracle import Row, update_weights, weights_of
from torch import Tensor

__all__ = ["FORMULAS", "Finding", "Fits", "Update", "fit_formulas", "name_formulas", "solve_weights"]

EXACT = 1e-4
"""Relative error below which a formula is the one that was measured; wrong ones differ by more than 1e-2."""

FORMULAS = {
    "dapo@batch": "1/T",
    "grpo@batch": "1/(N \\|o_i\\|)",
    "luspo": "1/N",
    "dapo": "1/(P sum_j \\|o_j\\|)",
    "grpo": "1/(P G \\|o_i\\|)",
    "ba": "n_s/(P G sum_s \\|o_j\\|)",
    "sum": "1",
    "micro token mean": "1/(K T_k)",
    "rank token mean": "1/(R T_r)",
    "micro rows, token mean": "N_k/(N T_k)",
    "micro row mean": "1/(K N_k \\|o_i\\|)",
    "micro row sum": "1/(K N_k)",
    "micro width": "1/(N L_k)",
}
"""Weights that are tried, simplest first. K micro-batches of an update (all ranks), R ranks; N_k, T_k, T_r: the rows
and tokens of a micro-batch or rank that count; L_k: the longest response in it."""


@dataclass(frozen=True)
class Update:
    """One update of a step, with what its formula may depend on."""

    rows: Sequence[Row]
    """All rows of the step."""
    chosen: list[int]
    """Rows of this update, by their number in the step."""
    updates: int
    ranks: int
    micro_batches: list[list[int]] | None
    """Rows of each, in the order of ranks; None where the order in which the trainer takes rows is not known."""
    row_gradients: Tensor
    """(rows, parameters) float64, not weighed."""
    gradient: Tensor
    """(parameters,) float64, what the trainer has."""

    def lengths(self, rows: Iterable[int]) -> list[int]:
        return [int(self.rows[i].mask.sum()) for i in rows if self.rows[i].mask.any()]

    def weights(self, formula: str) -> Tensor | None:
        """(rows,) by one of `FORMULAS` or a spec; None where it needs micro-batches that are not known."""
        if " " not in formula:
            spec = {"luspo": "dr_grpo:1@batch"}.get(formula, formula)
            given = (
                dict.fromkeys(self.chosen, 1.0)
                if formula == "sum"
                else update_weights(spec, self.rows, self.chosen, self.updates, 0)
            )
        elif self.micro_batches is None:
            return None
        else:
            given = self._local(formula)
        weights = torch.zeros(len(self.rows), dtype=torch.float64)
        for i, weight in given.items():
            weights[i] = weight
        return weights

    def weights_elsewhere(self, spec: str) -> Tensor:
        """(rows,) by the other reading of a scope: `batch` over the step, `prompt` over the update alone.

        A trainer that scales whole steps before it cuts them, or whose steps have one update, has no other.
        """
        members = list(range(len(self.rows))) if spec.endswith("@batch") else self.chosen
        rows = [self.rows[i] for i in members]
        signs = [float((row.advantages * row.mask).nan_to_num().sum()) for row in rows]
        lengths = [int(row.mask.sum()) for row in rows]
        found = weights_of(spec, lengths, [row.group for row in rows], 0, signs)
        scale = self.updates if spec.endswith("@batch") else 1
        weights = torch.zeros(len(self.rows), dtype=torch.float64)
        for i, weight in zip(members, found, strict=True):
            weights[i] = scale * weight if i in self.chosen else 0.0
        return weights

    def error(self, weights: Tensor) -> float:
        """Relative error of the gradient against what these weights would give, scale included."""
        expected = weights @ self.row_gradients
        error = float((self.gradient - expected).norm() / expected.norm())
        return math.inf if math.isnan(error) else error  # max() would pass over nan

    def _local(self, formula: str) -> dict[int, float]:
        parts = self.micro_batches or []
        if formula == "rank token mean":
            size = math.ceil(len(parts) / self.ranks)
            parts = [list(itertools.chain(*parts[i : i + size])) for i in range(0, len(parts), size)]
        parts = [part for part in parts if part]
        N = len(self.lengths(self.chosen))
        weights = {}
        for part in parts:
            N_k, T_k = len(self.lengths(part)), sum(self.lengths(part))
            for i in part:
                length = int(self.rows[i].mask.sum())
                if length:
                    weights[i] = {
                        "micro token mean": 1 / (len(parts) * T_k),
                        "rank token mean": 1 / (len(parts) * T_k),
                        "micro rows, token mean": N_k / (N * T_k),
                        "micro row mean": 1 / (len(parts) * N_k * length),
                        "micro row sum": 1 / (len(parts) * N_k),
                        "micro width": 1 / (N * max(len(self.rows[j].response) for j in part)),
                    }[formula]
        return weights

    def numbers(self) -> dict[str, float]:
        """What a scale may consist of."""
        lengths, T = self.lengths(self.chosen), sum(self.lengths(self.chosen))
        tokens = [int(row.mask.sum()) or len(row.response) for row in self.rows]
        rewarded = [i for i in self.chosen if (self.rows[i].advantages * self.rows[i].mask).any()]
        prompts = {self.rows[i].group for i in self.chosen if self.rows[i].mask.any()}
        return {
            "T": T,
            "N": len(lengths),
            "P": len(prompts),
            "(P / all prompts)": len(prompts) / len({self.rows[i].group for i in self.chosen}),
            "(N / all rows)": len(lengths) / (len(self.rows) / self.updates),
            "(T / all tokens)": T / sum(tokens[i] for i in self.chosen),
            "(T / tokens of the step)": T / sum(self.lengths(range(len(self.rows)))),
            "(T / all tokens of the step)": T / sum(tokens),
            "(T / tokens with an advantage)": T / max(sum(self.lengths(rewarded)), 1),
            "(T / tokens with those of tools)": T / sum(len(self.rows[i].response) for i in self.chosen),
        }


@dataclass(frozen=True)
class Finding:
    """The formula of some updates that were cut alike."""

    formula: str
    """One of the names that were tried; where none is exact, the one that was meant or comes nearest."""
    scale: str
    """By which it is multiplied, for example `1/M`; a range where it is no expression that is known."""
    error: float
    """Of formula times scale, relative, worst update; inf for one that is only near."""


def solve_weights(row_gradients: Tensor, gradient: Tensor) -> tuple[Tensor, float]:
    """The weight of each row, and the share of the gradient that no weights explain.

    Args:
        row_gradients: (rows, parameters) float64.
        gradient: (parameters,).

    Returns:
        (rows,) float64, NaN for a row whose gradient is zero; and the relative residual.
    """
    norms = row_gradients.norm(dim=1)
    seen = norms > 0
    weights = torch.full((len(norms),), math.nan, dtype=torch.float64)
    matrix = (row_gradients[seen] / norms[seen, None]).T
    solution = torch.linalg.lstsq(matrix, gradient.double()[:, None]).solution[:, 0]
    weights[seen] = solution / norms[seen]
    residual = (matrix @ solution - gradient).norm() / gradient.norm()
    return weights, float(residual)


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
