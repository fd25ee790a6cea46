"""Evaluation of proof verifiers: votes in; metrics with intervals, best-of-k and a report out.

A name is imported when it is first used, so that `--help` waits for neither numpy nor pyarrow. No module here has a
public name, which it would hide.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pv_eval.best_of import BestOf, best_of_curve, best_of_k, best_of_set
    from pv_eval.checks import Checked, Finding, check
    from pv_eval.evaluation import Evaluation, evaluate
    from pv_eval.intervals import Estimate, Intervals
    from pv_eval.majority import weighted_best_of_k
    from pv_eval.paired import compare
    from pv_eval.run_files import RunInfo, read_run, write_run
    from pv_eval.votes import Pair, Vote, read_vote, score_verdict

__version__ = "0.1.0"
__all__ = [
    "BestOf",
    "Checked",
    "Estimate",
    "Evaluation",
    "Finding",
    "Intervals",
    "Pair",
    "RunInfo",
    "Vote",
    "best_of_curve",
    "best_of_k",
    "best_of_set",
    "check",
    "compare",
    "evaluate",
    "read_run",
    "read_vote",
    "score_verdict",
    "weighted_best_of_k",
    "write_run",
]

_HOME = {
    "BestOf": "best_of",
    "Intervals": "intervals",
    "Checked": "checks",
    "Estimate": "intervals",
    "Evaluation": "evaluation",
    "Finding": "checks",
    "Pair": "votes",
    "RunInfo": "run_files",
    "Vote": "votes",
    "best_of_curve": "best_of",
    "best_of_k": "best_of",
    "best_of_set": "best_of",
    "check": "checks",
    "compare": "paired",
    "evaluate": "evaluation",
    "read_run": "run_files",
    "read_vote": "votes",
    "score_verdict": "votes",
    "weighted_best_of_k": "majority",
    "write_run": "run_files",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
