"""Rewards: async functions from a trace and its label to a score. They need neither torch nor verl."""

from pv_rl.rewards.base import Prepared, Reward, RewardInput, RewardOutput, read_label
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.degeneration import find_anomalies
from pv_rl.rewards.judge import Anomaly, Judge, Judgment
from pv_rl.rewards.proof_verdict import ProofVerdict

__all__ = [
    "Anomaly",
    "Judge",
    "Judgment",
    "Prepared",
    "ProofVerdict",
    "Reward",
    "RewardInput",
    "RewardOutput",
    "build_reward",
    "find_anomalies",
    "read_label",
]
