"""The mechanism of token weighting in a policy of eight logits: `python -m pv_lab.mechanism --out DIR`.

docs/studies/mechanism.md explains it. What would mislead alone is drawn and written together with its controls.
"""

from pv_lab.mechanism.experiments import experiments, weightings
from pv_lab.mechanism.outcome import Outcome, run_experiments
from pv_lab.mechanism.settings import Setting
from pv_lab.mechanism.training import History, Run, train

__all__ = ["History", "Outcome", "Run", "Setting", "experiments", "run_experiments", "train", "weightings"]
