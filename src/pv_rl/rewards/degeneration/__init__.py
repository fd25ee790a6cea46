"""Rule gate of the fluency veto: rules that find malformed traces in microseconds."""

from pv_rl.hookspecs import DegenerationRule
from pv_rl.rewards.degeneration.gate import BUILTIN_RULES, RuleSettings, find_anomalies, rules_from_config
from pv_rl.rewards.judge import Anomaly

__all__ = [
    "BUILTIN_RULES",
    "Anomaly",
    "DegenerationRule",
    "RuleSettings",
    "find_anomalies",
    "rules_from_config",
]
