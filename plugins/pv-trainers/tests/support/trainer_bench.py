"""Trainer bench: runs the drivers on the fixed steps, each in a process of its own, and keeps what they gave."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import pkgutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import drivers
import pytest
import torch
from effective_weights import Finding, Update, name_formula, solve_weights
from grid.cases import Case
from grid.compare import as_float64, data_of
from grid.model import load_oracle_model, save_model
from grid.oracle import row_gradient
from torch import Tensor
from trainer_cases import CUTS, trainer_cases
from trainer_grid import OURS, Step, make_step
from transformers import GPT2LMHeadModel

__all__ = ["Bench", "Report", "driver_names", "measure_driver", "measure_drivers"]


@dataclass
class Report:
    """What one driver gave."""

    name: str
    """The trainer's, or the driver's where it could not be loaded."""
    version: str = ""
    missing: str = ""
    """Why it could not be loaded."""
    default: str = ""
    own: dict[str, str] = field(default_factory=dict)
    findings: dict[str, dict[str, Finding]] = field(default_factory=dict)
    """[mode of its own][cut]."""
    own_errors: dict[str, dict[str, float]] = field(default_factory=dict)
    """[mode of its own][cut] against the spec that it is meant to equal."""
    our_errors: dict[str, dict[str, float]] = field(default_factory=dict)
    """[mode of ours][cut], worst update of all seeds."""
    cases: int = 0
    """Cases of our modes."""
    cannot: dict[str, str] = field(default_factory=dict)
    """Cuts that it does not run, with the reason."""
    seconds: float = 0.0


class Bench:
    """The two models, and the steps with the gradients of their rows."""

    def __init__(self, folder: Path) -> None:
        save_model(folder)
        self.oracle = load_oracle_model(folder)
        self.model = GPT2LMHeadModel.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="sdpa"
        ).eval()
        self._kept: dict[object, tuple[Step, Tensor]] = {}

    def step(self, case: Case) -> tuple[Step, Tensor]:
        """The rows of a case, and (rows, parameters) their gradients in float64."""
        key = (data_of(case), case.loss)
        if key not in self._kept:
            step = make_step(case, self.oracle)
            gradients = [
                row_gradient(self.oracle, as_float64(row), case.loss)
                if row.mask.any()
                else torch.zeros(sum(parameter.numel() for parameter in self.oracle.parameters())).double()
                for row in step.rows
            ]
            self._kept[key] = step, torch.stack(gradients)
        step, gradients = self._kept[key]
        return replace(step, case=case), gradients

    def updates(self, driver: ModuleType, case: Case, mode: str) -> list[Update]:
        """What a driver did with a case."""
        step, row_gradients = self.step(case)
        given = driver.gradients(self.model, step, mode)
        return [
            Update(
                rows=step.rows,
                chosen=chosen,
                updates=len(given),
                ranks=case.ranks,
                micro_batches=_micro_batches(case, chosen),
                row_gradients=row_gradients,
                gradient=gradient.double(),
            )
            for chosen, gradient in zip(_chosen(case, row_gradients, given), given, strict=True)
        ]


def _chosen(case: Case, row_gradients: Tensor, given: list[Tensor]) -> list[list[int]]:
    """The rows of each update: those with a weight, and those without a gradient where they would be in order."""
    rows, size = len(row_gradients), math.ceil(len(row_gradients) / len(given))
    seen, chosen = set[int](), []
    for gradient in given:
        weights, _ = solve_weights(row_gradients, gradient)
        shares = (weights * row_gradients.norm(dim=1)).abs().nan_to_num()
        members = {i for i in range(rows) if shares[i] > 1e-5 * shares.max()}
        seen |= members
        chosen.append(members)
    unseen = set(range(rows)) - seen
    return [
        sorted(members | (unseen & set(range(number * size, (number + 1) * size))))
        for number, members in enumerate(chosen)
    ]


def _micro_batches(case: Case, chosen: list[int]) -> list[list[int]] | None:
    """Rank by rank, in the order of the rows; None where micro-batches are cut by tokens."""
    if case.micro_rows is None:
        return None
    size = math.ceil(len(chosen) / case.ranks)
    shares = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return [
        share[start : start + case.micro_rows]
        for share in shares
        for start in range(0, len(share), case.micro_rows)
    ]


def driver_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(drivers.__path__))


def measure_drivers(names: list[str], *, own: bool, ours: bool) -> list[Report]:
    """A report of each, run in a fresh process: trainers put up their own process groups and import in their own way."""
    reports = []
    for name in names:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                reports.append(pool.submit(measure_driver, name, own=own, ours=ours).result())
            except BrokenProcessPool as error:
                reports.append(Report(name, missing=f"its process ended: {error}"))
    return reports


def measure_driver(
    name: str, *, own: bool = True, ours: bool = True, cases: list[Case] | None = None
) -> Report:
    """Run a driver on the cases (all by default) with its own modes, ours, or both."""
    started = time.monotonic()
    torch.set_num_threads(1)
    try:
        driver = importlib.import_module(f"drivers.{name}")
    except pytest.skip.Exception as reason:
        return Report(name, missing=str(reason))
    report = Report(
        name=driver.NAME,
        version=driver.VERSION,
        default=getattr(driver, "DEFAULT", ""),
        own=dict(driver.OWN),
        cannot={cut: why for cut, why in getattr(driver, "CANNOT", {}).items() if cut in CUTS},
    )
    by_cut: dict[str, list[Case]] = {}
    for case in trainer_cases() if cases is None else cases:
        if case.family not in report.cannot:
            by_cut.setdefault(case.family, []).append(case)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for cut, members in by_cut.items():
            for mode, meant in report.own.items() if own else ():
                updates = [update for case in members for update in bench.updates(driver, case, mode)]
                report.findings.setdefault(mode, {})[cut] = name_formula(updates, meant)
                if meant:
                    report.own_errors.setdefault(mode, {})[cut] = max(_error(u, meant) for u in updates)
            for mode in OURS if ours else ():
                updates = [update for case in members for update in bench.updates(driver, case, mode)]
                report.our_errors.setdefault(mode, {})[cut] = max(_error(u, mode) for u in updates)
                report.cases += len(members)
    report.seconds = time.monotonic() - started
    return report


def _error(update: Update, spec: str) -> float:
    """Relative error of an update's gradient against a spec, at its own scale."""
    expected = update.weights(spec)
    assert expected is not None
    gradient = expected @ update.row_gradients
    error = float((update.gradient - gradient).norm() / gradient.norm())
    return math.inf if math.isnan(error) else error  # max() would pass over nan
