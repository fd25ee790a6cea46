"""Run a case through verl and measure it against the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

import torch

from grid.cases import Case, make_rows, make_scores
from grid.model import load_oracle_model
from grid.oracle import Row, row_gradient, update_weights
from grid.ranks import Ranks

TOLERANCE = {"float32": 5e-6, "float64": 1e-12}
"""Relative error of a gradient, by the dtype that verl computes in."""


class Grid:
    """A pool of ranks and an oracle. `error(case)` is the number that the claim is about."""

    def __enter__(self) -> Grid:
        self.ranks = Ranks().__enter__()
        self.model = load_oracle_model(self.ranks.model)
        self._threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the matrices are small, and the ranks want the cores
        self._gradients: dict[object, torch.Tensor] = {}
        self._rows: dict[object, list[Row]] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_num_threads(self._threads)
        self.ranks.__exit__(kind, value, trace)

    def error(self, case: Case, dtype: str = "float32", *, local: bool = False) -> float:
        """Worst relative error of the gradient over the updates of a step.

        `||verl - oracle|| / ||oracle||` with all parameters in one vector, and the norm of the difference
        alone where the oracle says zero (an update of rows that do not count). `local` makes the mistake of
        `grid.worker.local_normaliser`.
        """
        rows = self.rows(case)
        updates, advantages = self.ranks.run(case, rows, make_scores(case), dtype=dtype, local=local)
        rows = [replace(row, advantages=advantages[i]) for i, row in enumerate(rows)]
        check_cut(case, updates)
        total = sum(len(micro) for update in updates for rank in update.cuts for micro in rank) / case.epochs
        errors = []
        for update in updates:
            expected = self.gradient(case, rows, update.rows, total / case.rows_of_a_mini_batch)
            difference = (update.gradient - expected).norm().item()
            error = difference / (expected.norm().item() or 1.0)
            errors.append(math.inf if math.isnan(error) else error)  # max() would pass over nan
        return max(errors)

    def gradient(
        self, case: Case, rows: list[Row], chosen: Sequence[int], mini_batches: float
    ) -> torch.Tensor:
        """(parameters,) what the paper says that an update with these rows is."""
        weights = update_weights(case.spec, rows, chosen, mini_batches, case.longest)
        total = torch.zeros(
            sum(parameter.numel() for parameter in self.model.parameters()), dtype=torch.float64
        )
        for i, weight in weights.items():
            if weight:
                total += weight * self.row_gradient(case, i, rows[i])
        return total

    def rows(self, case: Case) -> list[Row]:
        key = data_of(case)
        if key not in self._rows:
            self._rows, self._gradients = {key: make_rows(case, self.model)}, {}
        return self._rows[key]

    def row_gradient(self, case: Case, i: int, row: Row) -> torch.Tensor:
        """Kept while the rows stay the same: modes and cuts share them.

        Their advantages may differ in the last bit with the order of rows in which verl takes a group's mean.
        """
        key = (data_of(case), case.loss, i, row.advantages.numpy().tobytes())
        if key not in self._gradients:
            self._gradients[key] = row_gradient(self.model, as_float64(row), case.loss)
        return self._gradients[key]


def data_of(case: Case) -> object:
    return (case.groups, case.seed, case.abstained, case.holes, case.is_weights)


def as_float64(row: Row) -> Row:
    names = ("old_log_probs", "ref_log_probs", "advantages", "is_weights")
    return replace(row, **{name: getattr(row, name).double() for name in names})


def check_cut(case: Case, updates) -> None:
    """Every row was in one update an epoch, and the step was cut as the case says."""
    seen = sorted(row for update in updates for row in update.rows)
    wanted = sorted(list(range(len(case.lengths))) * case.epochs)
    assert seen == wanted, f"{case}: rows {seen} were trained on"
    for update in updates:
        assert len(update.cuts) == case.ranks
        assert sum(len(micro) for rank in update.cuts for micro in rank) == case.rows_of_a_mini_batch
        if case.micro_rows:
            assert {len(micro) for rank in update.cuts for micro in rank} == {case.micro_rows}
