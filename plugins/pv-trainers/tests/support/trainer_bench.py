"""Trainer bench: runs the drivers on the fixed steps, each in a process of its own, and keeps what they gave."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import drivers
import pytest
import torch
from effective_weights import Update, solve_weights
from formula_names import Finding, Fits, fit_formulas, name_formulas
from grid.cases import VANILLA, Case
from torch import Tensor
from trainer_cases import trainer_cases
from trainer_errors import Measure
from trainer_grid import OURS

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
    elsewhere: set[str] = field(default_factory=set)
    """Modes of ours whose scope has the other reading, see `Update.weights_elsewhere`."""
    cases: int = 0
    """Cases of our modes."""
    cannot: dict[str, str] = field(default_factory=dict)
    """Cuts that it does not run, with the reason."""
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    """[mode][cut], what the trainer or its driver raised."""
    seconds: float = 0.0


class Bench(Measure):
    """Runs a driver on cases."""

    def updates(self, driver: Any, case: Case, mode: str) -> list[Update]:
        """What a driver did with a case."""
        step, row_gradients = self.step(case), self.row_gradients(case)
        given = driver.gradients(self.model(torch.float32), step, mode)
        solved = [solve_weights(row_gradients, gradient)[0] for gradient in given]
        return [
            Update(
                rows=step.rows,
                chosen=chosen,
                updates=len(given),
                ranks=case.ranks,
                micro_batches=_micro_batches(case, chosen, weights),
                row_gradients=row_gradients,
                gradient=gradient.double(),
            )
            for chosen, gradient, weights in zip(_chosen(row_gradients, solved), given, solved, strict=True)
        ]


def _chosen(row_gradients: Tensor, solved: list[Tensor]) -> list[list[int]]:
    """The rows of each update: those with a weight, and those without a gradient where they would be in order."""
    rows, size = len(row_gradients), math.ceil(len(row_gradients) / len(solved))
    seen, chosen = set[int](), []
    for weights in solved:
        shares = (weights * row_gradients.norm(dim=1)).abs().nan_to_num()
        members = {i for i in range(rows) if shares[i] > 1e-5 * shares.max()}
        seen |= members
        chosen.append(members)
    unseen = set(range(rows)) - seen
    return [
        sorted(members | (unseen & set(range(number * size, (number + 1) * size))))
        for number, members in enumerate(chosen)
    ]


def _micro_batches(case: Case, chosen: list[int], weights: Tensor) -> list[list[int]] | None:
    """The rows of each; None where micro-batches are cut by tokens.

    Rows that share a weight, if they are as many as a micro-batch has: the trainer shuffled the rows, and divides each
    micro-batch by a number of its own. Else rank by rank, in the order of the rows.
    """
    if case.micro_rows is None:
        return None
    alike: list[list[int]] = []
    for i in chosen:
        for part in alike:
            if math.isclose(weights[i], weights[part[0]], rel_tol=2e-3):
                part.append(i)
                break
        else:
            alike.append([i])
    if case.micro_rows > 1 and {len(part) for part in alike} == {case.micro_rows}:
        return alike
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
    """A report of each, in a fresh process: trainers put up their own process groups, and change what is imported."""
    reports = []
    for name in names:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                reports.append(pool.submit(load_and_measure, name, own=own, ours=ours).result())
            except Exception as error:  # noqa: BLE001 - one trainer's failure leaves the others measured
                reports.append(Report(name, missing=f"failed: {error!r}"))
        last = reports[-1]
        sys.stderr.write(f"{last.name}: {last.missing or f'{last.seconds:.0f} s'}\n")
    return reports


def load_and_measure(name: str, *, own: bool, ours: bool) -> Report:
    """`measure_driver` of a module of `drivers`, on all cases, without what the trainer prints."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    torch.set_num_threads(1)  # the matrices are small
    try:
        driver = importlib.import_module(f"drivers.{name}")
    except pytest.skip.Exception as reason:
        return Report(name, missing=str(reason))
    return measure_driver(driver, trainer_cases(), own=own, ours=ours)


def measure_driver(driver: Any, cases: list[Case], *, own: bool = True, ours: bool = True) -> Report:
    """Run a driver (see `trainer_grid.Driver`) with its own modes, ours, or both."""
    started = time.monotonic()
    report = Report(
        name=driver.NAME,
        version=driver.VERSION,
        default=getattr(driver, "DEFAULT", ""),
        own=dict(driver.OWN),
        cannot=dict(getattr(driver, "CANNOT", {})),
    )
    fits: dict[str, dict[str, Fits]] = {}
    by_cut: dict[str, list[Case]] = {}
    for case in cases:
        if case.family not in report.cannot:
            by_cut.setdefault(case.family, []).append(case)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for members in by_cut.values():
            for mode in [*(report.own if own else ()), *(OURS if ours else ())]:
                _measure_mode(report, fits, bench, driver, members, mode)
            report.cases += len(members) * len(OURS) * ours
    report.findings = {mode: name_formulas(found) for mode, found in fits.items() if found}
    report.seconds = time.monotonic() - started
    return report


def _measure_mode(
    report: Report, fits: dict[str, dict[str, Fits]], bench: Bench, driver: Any, cases: list[Case], mode: str
) -> None:
    """One mode under one cut; what goes wrong is kept as a reason why it was not run."""
    cut, losses = cases[0].family, getattr(driver, "LOSSES", {})
    if mode in losses and cases[0].loss != VANILLA:
        return  # it has a policy loss of its own
    chosen = [replace(case, loss=losses.get(mode, case.loss)) for case in cases]
    try:
        updates = [update for case in chosen for update in bench.updates(driver, case, mode)]
    except Exception as error:  # noqa: BLE001 - whatever the trainer raises
        text = str(error) or repr(error)
        report.failed.setdefault(mode, {})[cut] = " ".join(text.replace("|", "/").split())[:120]
        return
    if mode in report.own:
        meant = report.own[mode]
        fits.setdefault(mode, {})[cut] = fit_formulas(updates, meant)
        if meant:
            report.own_errors.setdefault(mode, {})[cut] = max(_error(update, meant) for update in updates)
        return
    errors = max(_error(update, mode) for update in updates)
    if errors > 1e-2:
        other = max(update.error(update.weights_elsewhere(mode)) for update in updates)
        if other < 1e-2:
            report.elsewhere.add(mode)
        errors = min(errors, other)
    report.our_errors.setdefault(mode, {})[cut] = errors


def _error(update: Update, spec: str) -> float:
    weights = update.weights(spec)
    assert weights is not None
    return update.error(weights)
