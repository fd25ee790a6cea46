"""Rewards: async functions from a trace and its label to a score. Know neither torch nor verl."""

from pv_rl.rewards.base import Reward, RewardInput, RewardOutput, read_label
from pv_rl.rewards.proof_verdict import ProofVerdict

__all__ = ["ProofVerdict", "Reward", "RewardInput", "RewardOutput", "read_label"]
