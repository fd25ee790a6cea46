"""Weight preview: what a loss-aggregation mode does to given lengths, before training. `pv-rl weights` prints it.

Nothing here imports torch, pyarrow, matplotlib or transformers until it is needed.
"""

from pv_runs.weights.reading import read_rollouts
from pv_runs.weights.rollouts import Rollouts, read_lengths
from pv_runs.weights.summary import DEFAULT_MODES, ModeSummary, Part, Summary, summarise

__all__ = [
    "DEFAULT_MODES",
    "ModeSummary",
    "Part",
    "Rollouts",
    "Summary",
    "read_lengths",
    "read_rollouts",
    "summarise",
]
