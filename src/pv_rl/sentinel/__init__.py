"""A watcher of a run's metric stream that sees a collapse coming. It knows nothing of verl and imports no torch."""

from pv_rl.sentinel.alarm import Alarm
from pv_rl.sentinel.guard import ACTIONS, Due, Guard, GuardConfig
from pv_rl.sentinel.settings import SentinelConfig
from pv_rl.sentinel.signs import DEFAULT_SIGNS, SIGNS, Sign
from pv_rl.sentinel.watcher import Watcher

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
