"""Relative error of a trainer's gradient against the oracle's, over the updates of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from grid.cases import Case
from grid.compare import as_float64, data_of
from grid.model import load_oracle_model, save_model
from grid.oracle import Loss, row_gradient, update_weights
from trainer_grid import Driver, Step, make_step
from transformers import GPT2LMHeadModel

__all__ = ["Measure"]


class Measure:
    """An oracle and the model that trainers get, with what was computed for a step kept.

    Args:
        folder: empty; the model is saved there.
    """

    def __init__(self, folder: Path) -> None:
        save_model(folder)
        self.oracle = load_oracle_model(folder)
        self.model = cache(
            lambda dtype: GPT2LMHeadModel.from_pretrained(
                folder, dtype=dtype, attn_implementation="sdpa"
            ).train()
        )
        self._steps: dict[object, Step] = {}
        self._gradients: dict[object, torch.Tensor] = {}

    def step(self, case: Case) -> Step:
        key = data_of(case)
        if key not in self._steps:
            self._steps[key] = make_step(case, self.oracle)
        return Step(case, self._steps[key].rows)

    def row_gradients(self, case: Case) -> torch.Tensor:
        """(rows, parameters) float64; zeros for a row that does not count."""
        rows = enumerate(self.step(case).rows)
        return torch.stack(
            [self.weighted(case, {i: 1.0 if row.mask.any() else 0.0}, case.loss) for i, row in rows]
        )

    def weighted(self, case: Case, weights: Mapping[int, float], loss: Loss) -> torch.Tensor:
        """(parameters,) `sum_i w_i * gradient_i`, of rows by their index."""
        total = torch.zeros(
            sum(parameter.numel() for parameter in self.oracle.parameters()), dtype=torch.float64
        )
        for i, weight in weights.items():
            if weight:
                key = (data_of(case), loss, i)
                if key not in self._gradients:
                    self._gradients[key] = row_gradient(
                        self.oracle, as_float64(self.step(case).rows[i]), loss
                    )
                total += weight * self._gradients[key]
        return total

    def expected(
        self, case: Case, spec: str, chosen: Sequence[Sequence[int]] | None = None
    ) -> list[torch.Tensor]:
        """The policy terms of each update.

        Args:
            case: one way to cut a step.
            spec: one of ours.
            chosen: rows of each update; by default rows in their order, `mini_rows` an update, `epochs` times.
        """
        rows = self.step(case).rows
        size = case.mini_rows or len(rows)
        parts = [range(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
        loss = replace(case.loss, kl=None, kl_coef=0.0)
        return [
            self.weighted(case, update_weights(spec, rows, part, len(parts), case.longest), loss)
            for part in chosen or parts * case.epochs
        ]

    def error(
        self,
        driver: Driver,
        case: Case,
        mode: str,
        spec: str = "",
        dtype: torch.dtype = torch.float32,
        **more: Any,
    ) -> float:
        """Worst over the updates.

        Args:
            driver: a module of `drivers`.
            case: one way to cut a step.
            mode: what the driver is asked for.
            spec: what the oracle is asked for; `mode` by default.
            dtype: of the model.
            more: further arguments of the driver.
        """
        found = driver.gradients(self.model(dtype), self.step(case), mode, **more)
        return worst(found, self.expected(case, spec or mode))


def worst(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    assert len(found) == len(expected)
    pairs = zip(found, expected, strict=True)
    return max(float((ours - theirs).norm() / (theirs.norm() or 1.0)) for ours, theirs in pairs)
