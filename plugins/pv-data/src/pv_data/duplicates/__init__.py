"""Near-duplicates of problems, within a run and against test sets."""

from pv_data.duplicates.clusters import clusters, first_of_each
from pv_data.duplicates.contamination import contamination, problems_of
from pv_data.duplicates.contamination_report import Contamination, Hit

__all__ = ["Contamination", "Hit", "clusters", "contamination", "first_of_each", "problems_of"]
