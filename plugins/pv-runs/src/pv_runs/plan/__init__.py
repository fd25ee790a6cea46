"""What a run needs and costs, before any GPU is paid for. `pv-rl plan` shows it.

Nothing here imports torch or verl.
"""

from pv_runs.plan.assumed import Assumed
from pv_runs.plan.findings import Finding
from pv_runs.plan.planning import Plan, make_plan

__all__ = ["Assumed", "Finding", "Plan", "make_plan"]
