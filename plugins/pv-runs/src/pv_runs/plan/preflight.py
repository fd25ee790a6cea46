"""Check of `pv-rl train --check`: rules of verl and vLLM for dividing GPUs, and whether the estimated memory fits."""

from __future__ import annotations

from collections.abc import Iterator

from omegaconf import DictConfig

from pv_rl import hookspecs
from pv_rl.errors import PvRlError
from pv_runs.plan.findings import division_findings
from pv_runs.plan.planning import make_plan
from pv_runs.plan.setup import read_setup
from pv_runs.typed_config import Settings

__all__ = ["check_plan"]

SHOWN = ("does not run", "does not fit")


def check_plan(config: DictConfig) -> Iterator[hookspecs.Finding]:
    """What breaks a rule is wrong. What follows from an estimate, or from `cluster.gpu`, is a note."""
    try:
        rules = [
            one for one in division_findings(read_setup(Settings(config=config))) if one.severity in SHOWN
        ]
        plan = make_plan(config)
    except PvRlError as error:  # no plan of such a run, on a CPU for example
        yield hookspecs.Finding(state="ok", text=f"no estimate ({str(error).partition(';')[0]})")
        return
    for one in plan.findings:
        if one.severity in SHOWN:
            remedy = f"set {' '.join(one.overrides)}" if one.overrides else "see pv-rl plan"
            yield hookspecs.Finding(state="wrong" if one in rules else "note", text=one.text, remedy=remedy)
    if plan.runs:
        yield hookspecs.Finding(state="ok", text="GPUs can be divided, and the estimated memory fits")
