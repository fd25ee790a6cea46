"""How good a verifier is, and how well it picks: votes in, numbers with intervals and a report out.

A name is imported when it is first used, so that `pv-data --help` waits for neither numpy nor pyarrow. None is that of
a module here, which would hide it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pv_eval.answers import weighted_best_of_k
    from pv_eval.best_of import best_of_curve, best_of_k
    from pv_eval.best_of_curves import BestOf, best_of_set
    from pv_eval.checks import Checked, Finding, check
    from pv_eval.evaluation import Evaluation, evaluate
    from pv_eval.files import read_run, write_run
    from pv_eval.intervals import Bootstrap, Estimate
    from pv_eval.paired import compare
    from pv_eval.run_info import RunInfo
    from pv_eval.scorer import read_vote, score_verdict
    from pv_eval.votes import Pair, Vote

__all__ = [
    "BestOf",
    "Bootstrap",
    "Checked",
    "Estimate",
    "Evaluation",
    "Finding",
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
    "BestOf": "best_of_curves",
    "Bootstrap": "intervals",
    "Checked": "checks",
    "Estimate": "intervals",
    "Evaluation": "evaluation",
    "Finding": "checks",
    "Pair": "votes",
    "RunInfo": "run_info",
    "Vote": "votes",
    "best_of_curve": "best_of",
    "best_of_k": "best_of",
    "best_of_set": "best_of_curves",
    "check": "checks",
    "compare": "paired",
    "evaluate": "evaluation",
    "read_run": "files",
    "read_vote": "scorer",
    "score_verdict": "scorer",
    "weighted_best_of_k": "answers",
    "write_run": "files",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
