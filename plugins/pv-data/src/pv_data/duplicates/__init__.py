"""Near-duplicates of problems, within a run and against test sets."""

from pv_data.duplicates.clusters import clusters, first_of_each
from pv_data.duplicates.contamination import Contamination, Hit, contamination, problems_of

__all__ = ["Contamination", "Hit", "clusters", "contamination", "first_of_each", "problems_of"]
