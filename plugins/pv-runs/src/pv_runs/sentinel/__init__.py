"""Sentinel: watches a run's metrics for signs of a collapse. It knows nothing of verl and imports no torch."""

from pv_runs.sentinel.alarm_policy import ACTIONS, AlarmPolicy, AlarmPolicyConfig, Due
from pv_runs.sentinel.detectors import DEFAULT_DETECTORS, DETECTORS, Detector
from pv_runs.sentinel.settings import SentinelConfig
from pv_runs.sentinel.watcher import Alarm, Watcher

__all__ = [
    "ACTIONS",
    "DEFAULT_DETECTORS",
    "DETECTORS",
    "Alarm",
    "AlarmPolicy",
    "AlarmPolicyConfig",
    "Detector",
    "Due",
    "SentinelConfig",
    "Watcher",
]
