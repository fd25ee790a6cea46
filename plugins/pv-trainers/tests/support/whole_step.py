"""Whole step: the oracle's gradient of each update of a step, with weights that were fixed once for all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from grid.cases import Case
from grid.oracle import Loss, update_weights, weights_of
from torch import Tensor
from trainer_errors import Measure
from trainer_grid import Step

__all__ = ["WholeStep"]


class WholeStep:
    """The oracle, and the trainer's model with the same weights.

    Args:
        folder: an empty one, for the model.
        dtype: that the trainer computes in.
    """

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self._measure = Measure(folder)
        self.model = self._measure.model(dtype)

    def step(self, **settings: object) -> Step:
        """Three prompts of four responses of up to 60 tokens, unless `groups` is given."""
        groups = ((1, 2, 5, 60), (33, 4, 47, 9), (12, 12, 3, 20))
        return self._measure.step(Case(**({"groups": groups} | settings)))

    def gradient(self, step: Step, weights: dict[int, float], loss: Loss | None = None) -> Tensor:
        """(parameters,) of `sum_i w_i sum_t loss_it`, by the row's index in the step."""
        return self._measure.weighted(step.case, weights, loss or step.case.loss)

    def weights(self, step: Step, spec: str) -> list[float]:
        """Of all rows of the step; `@batch` is the batch of the step."""
        lengths = [int(row.mask.sum()) for row in step.rows]
        advantages = [float((row.advantages * row.mask).sum()) for row in step.rows]
        return weights_of(spec, lengths, [row.group for row in step.rows], max(lengths), advantages)

    def error(
        self, step: Step, updates: Sequence[tuple[list[int], Tensor]], spec: str, *, own: bool = False
    ) -> float:
        """Worst relative error of the updates.

        Args:
            step: what was trained on.
            updates: the rows of each update and its gradient; every row has to be in one.
            spec: one of ours. Its weights are those of the whole step times the number of updates.
            own: whether `@batch` is the batch of an update instead, as trainers have it.
        """
        assert sorted(i for rows, _ in updates for i in rows) == list(range(len(step.rows)))
        whole, errors = self.weights(step, spec), []
        for rows, gradient in updates:
            weights = {i: whole[i] * len(updates) for i in rows}
            if own:
                weights = update_weights(spec, step.rows, rows, len(updates), step.case.longest)
            expected = self.gradient(step, weights)
            errors.append(((gradient.double() - expected).norm() / expected.norm()).item())
        return max(errors)
