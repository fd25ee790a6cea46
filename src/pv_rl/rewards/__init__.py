"""Rewards: async functions from a trace and its label to a score. Know neither torch nor verl."""

from pv_rl.rewards.base import Prepared, Reward, RewardInput, RewardOutput, read_label
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.degeneration import Anomaly, find_anomalies
from pv_rl.rewards.proof_verdict import ProofVerdict

__all__ = [
    "Anomaly",
    "Prepared",
    "ProofVerdict",
    "Reward",
    "RewardInput",
    "RewardOutput",
    "build_reward",
    "find_anomalies",
    "read_label",
]
