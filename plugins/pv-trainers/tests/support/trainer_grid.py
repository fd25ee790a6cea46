"""Steps on which each trainer's own code is compared with the oracle, and what a driver of a trainer is.

A driver is a module of `drivers` that runs one trainer's own functions on the rows of a step, on the CPU, and gives the
gradient that its optimizer would be handed. Rows, model and oracle are those of verl's grid (`tests/support/grid`).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest
import torch
from grid.cases import Case, make_rows, make_scores
from grid.oracle import Row
from transformers import PreTrainedModel

__all__ = ["OURS", "Driver", "Step", "beside", "make_step"]

OURS = ("grpo", "dapo", "balanced:0.6", "dapo@batch", "dr_grpo:64", "vl_norm:0.75:64", "ba")
"""The modes that every trainer is measured with."""


@dataclass(frozen=True)
class Step:
    """Rows of one step with their advantages, and how the trainer is to cut them."""

    case: Case
    """`groups`, `spec`, `loss` (vanilla, gspo, cispo; `kl`), `abstained`, `micro_rows`, `mini_rows`, `ranks`."""
    rows: list[Row]
    """Advantages: score minus the mean of the group's rows that count, the same for each token; float32."""


class Driver(Protocol):
    """What a module of `drivers` has.

    It may also have `DEFAULT`, the one of `OWN` that the trainer has by default; `CANNOT`, the families of
    `trainer_cases` that it does not run, each with the reason; `LOSSES`, the policy loss of an own mode that has one.
    """

    NAME: str
    """The trainer, for example `TRL`."""
    VERSION: str
    """The version that is pinned and read."""
    OWN: Mapping[str, str]
    """The trainer's own names of aggregations, each with the spec of ours that it is meant to equal, or ''."""

    def gradients(self, model: PreTrainedModel, step: Step, mode: str) -> list[torch.Tensor]:
        """The gradient of each optimizer update of the step, all ranks together, before clipping: (parameters,) each.

        Args:
            model: float32 or float64, on the CPU; its gradients are overwritten.
            step: what is trained on.
            mode: a name in `OWN`, or a spec of ours, which goes through the module of `pv_trainers`.
        """
        ...


def make_step(case: Case, model: PreTrainedModel) -> Step:
    """The rows of a case, with advantages.

    Args:
        case: what to draw.
        model: the oracle's, in float64, near which the old policy is drawn.
    """
    rows, scores = make_rows(case, model), make_scores(case)
    baseline: dict[object, list[float]] = {}
    for row, score in zip(rows, scores, strict=True):
        if row.mask.any():
            baseline.setdefault(row.group, []).append(score)
    advantages = [
        score - sum(baseline[row.group]) / len(baseline[row.group]) if row.mask.any() else 0.0
        for row, score in zip(rows, scores, strict=True)
    ]
    filled = [
        replace(row, advantages=torch.full((len(row.response),), advantage))
        for row, advantage in zip(rows, advantages, strict=True)
    ]
    return Step(case, filled)


def beside(package: str, *modules: str) -> None:
    """Put a trainer that `make test` installs beside on the path, after everything else; skip where it is absent.

    Args:
        package: name and version, for example `trl-1.16.0`: a folder of `.venv/beside`.
        modules: what has to be importable from it.
    """
    folder = Path(sys.prefix) / "beside" / package
    if not (folder / ".installed").exists():
        pytest.skip(f"{package} is not in {folder}: make test puts it there", allow_module_level=True)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    for module in modules:
        importlib.import_module(module)
