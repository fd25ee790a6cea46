"""Human audit statistics: what an audit proves, and how a plan behaves before anyone reads a proof.

Nothing here imports numpy, scipy or matplotlib until it computes or draws.
"""

from pv_data.audit.bounds import (
    confidence_each,
    interval,
    lower_bound,
    simultaneous_lower_bounds,
    slices_above,
    upper_bound,
)
from pv_data.audit.clusters import (
    Clustered,
    bootstrap_lower_bound,
    clustered_lower_bound,
    intraclass_correlation,
)
from pv_data.audit.comparison import Comparison, PlanFigures, compare, usual_plans
from pv_data.audit.evidence import Evidence, Group, Proven, prove, weigh
from pv_data.audit.marks import Mark, Recorded, SliceState, decide, read_audit, recorded, slice_states
from pv_data.audit.operating import OperatingCharacteristic, Stop, implied_bound, operating_characteristic
from pv_data.audit.plan import Plan, Round, Rounds, Stage, curtailed
from pv_data.audit.risk_plans import Risks, fixed_plan, sequential_plan
from pv_data.audit.sampling import Drawn, Short, cumulative_samples, draw, pilot_proofs, pilot_questions

__all__ = [
    "Clustered",
    "Comparison",
    "Drawn",
    "Evidence",
    "Group",
    "Mark",
    "OperatingCharacteristic",
    "Plan",
    "PlanFigures",
    "Proven",
    "Recorded",
    "Risks",
    "Round",
    "Rounds",
    "Short",
    "SliceState",
    "Stage",
    "Stop",
    "bootstrap_lower_bound",
    "clustered_lower_bound",
    "compare",
    "confidence_each",
    "cumulative_samples",
    "curtailed",
    "decide",
    "draw",
    "fixed_plan",
    "implied_bound",
    "interval",
    "intraclass_correlation",
    "lower_bound",
    "operating_characteristic",
    "pilot_proofs",
    "pilot_questions",
    "prove",
    "read_audit",
    "recorded",
    "sequential_plan",
    "simultaneous_lower_bounds",
    "slice_states",
    "slices_above",
    "upper_bound",
    "usual_plans",
    "weigh",
]
