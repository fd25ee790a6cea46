"""Effective weights: which weight an update gave to each row, and which weights the formulas would give.

The gradient of an update is linear in the rows' gradients, so a least-squares fit gives the weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from grid.oracle import Row, update_weights, weights_of
from torch import Tensor

__all__ = ["FORMULAS", "Update", "solve_weights"]

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
