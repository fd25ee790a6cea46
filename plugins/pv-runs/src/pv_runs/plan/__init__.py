"""Run plan: memory, time and cost of a run, before any GPU is paid for. `pv-rl plan` prints it.

Nothing here imports torch or verl.
"""

from pv_runs.plan.assumed import Assumed
from pv_runs.plan.findings import Finding
from pv_runs.plan.planning import Plan, make_plan

__all__ = ["Assumed", "Finding", "Plan", "make_plan"]
