"""The rule gate of the fluency veto: malformed traces are found by rules that cost microseconds."""

from pv_rl.rewards.degeneration.gate import BUILTIN_RULES, RuleSettings, find_anomalies, rules_from_config
from pv_rl.rewards.degeneration.rule import Anomaly, DegenerationRule

__all__ = [
    "BUILTIN_RULES",
    "Anomaly",
    "DegenerationRule",
    "RuleSettings",
    "find_anomalies",
    "rules_from_config",
]
