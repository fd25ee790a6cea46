"""A watcher of a run's metric stream that sees a collapse coming. It knows nothing of verl and imports no torch."""

from pv_runs.sentinel.alarm import Alarm
from pv_runs.sentinel.guard import ACTIONS, Due, Guard, GuardConfig
from pv_runs.sentinel.settings import SentinelConfig
from pv_runs.sentinel.signs import DEFAULT_SIGNS, SIGNS, Sign
from pv_runs.sentinel.watcher import Watcher

__all__ = [
    "ACTIONS",
    "DEFAULT_SIGNS",
    "SIGNS",
    "Alarm",
    "Due",
    "Guard",
    "GuardConfig",
    "SentinelConfig",
    "Sign",
    "Watcher",
]
