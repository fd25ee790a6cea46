"""Lab runs: the lab's verifier trained with each weighting and seed, and the comparison.

`pv-rl lab run` and `pv-rl lab report`; docs/studies/lab.md says what each number is.
"""

from pv_lab.runs.running import run_lab
from pv_lab.runs.settings import LabSettings

__all__ = ["LabSettings", "run_lab"]
