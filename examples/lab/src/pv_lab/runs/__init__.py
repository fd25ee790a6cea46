"""The lab, whole: the lab's verifier trained under each weighting and seed, and what came of it.

`pv-rl lab run` and `pv-rl lab report`; docs/lab.md says what each number is.
"""

from pv_lab.runs.running import run_lab
from pv_lab.runs.settings import LabSettings

__all__ = ["LabSettings", "run_lab"]
