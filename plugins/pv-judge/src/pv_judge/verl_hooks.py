"""Trainer hooks of the judge: its spend file, its metrics, the halt of a run, and closing the ledger."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pv_judge.metrics import RowId, Span
from pv_judge.ray_service import driver_services, run_folder
from pv_rl import metric_names

if TYPE_CHECKING:
    from pv_rl.step_state import StepState

__all__ = ["add_metrics", "close", "halt_reason", "halt_run", "judge_numbers", "name_run_folder"]

logger = logging.getLogger("pv_rl")


def name_run_folder(state: StepState) -> None:
    """Hook: from here on, services that this process prepares keep their spend file with the run's checkpoints."""
    run_folder.set(Path(state.config.trainer.default_local_dir))


def add_metrics(state: StepState) -> None:
    """Hook: log what the services report of the step that ends; from now on they count for the next one."""
    ids = state.rows.ids if state.rows is not None else ()
    state.metrics.update(judge_numbers(state.step + 1, ids, state.waited))


def halt_run(state: StepState) -> None:
    """Hook: end the run where the failure policy or the watchdog says so."""
    if reason := halt_reason():
        state.halt(reason)


def close(state: StepState) -> None:
    """Hook: the run is over, fold the ledger's journal into Parquet."""
    for service in driver_services():
        try:
            service.close()
        except Exception:
            logger.warning(
                "the judge's ledger was not folded into Parquet; readers find its journal", exc_info=True
            )


def judge_numbers(step: int, rows: Sequence[RowId], window: Span | None) -> dict[str, float]:
    """What the services of this run report, see `pv_judge.metrics.Metrics.report`; from now on they count for `step`.

    A service that does not answer does not end the run: `pv_rl/judge/unreachable` is 1 then.
    """
    numbers: dict[str, float] = {}
    for service in driver_services():
        try:
            report = service.report(step, rows, window)
        except Exception:  # noqa: BLE001 - Ray's errors and time-outs; the policy decides on rows, not this
            _log_once()
            report = {"unreachable": 1.0}
        for name, value in report.items():
            key = metric_names.JUDGE + name
            # Of several judges: what was counted is added up, and of the rest the largest is reported.
            numbers[key] = (
                numbers.get(key, 0.0) + value
                if name.endswith("/sum")
                else max(value, numbers.get(key, value))
            )
    return numbers


def halt_reason() -> str | None:
    """Why a service of this process wants the run to end, or None."""
    for service in driver_services():
        try:
            if reason := service.halt_reason():
                return reason
        except Exception as error:  # noqa: BLE001 - Ray's errors and timeouts; the watchdog restarts a silent actor
            logger.warning(
                "The judge's actor did not report whether to halt the run: %s", type(error).__name__
            )
    return None


@cache
def _log_once() -> None:
    logger.exception("the judge did not report, which is logged once")
