"""Our rewards, entered through the hook that plugins use."""

from __future__ import annotations

from pv_rl.errors import ConfigError
from pv_rl.hookspecs import RewardEntry, hookimpl
from pv_rl.rewards.fluency_veto import FluencyVeto
from pv_rl.rewards.proof_verdict import ProofVerdict
from pv_rl.rewards.weighted import Weighted

__all__ = ["pv_rl_rewards"]


def _verdict(judge: object = None) -> ProofVerdict:
    if judge is not None:
        raise ConfigError(
            "the reward 'verdict' asks no judge: take verdict_fluency, or leave the judge out (judge=rules)"
        )
    return ProofVerdict()


@hookimpl
def pv_rl_rewards() -> list[RewardEntry]:
    return [
        RewardEntry(name="verdict", build=_verdict, cheap=True, meaning="1 if the verdict is right, else 0"),
        RewardEntry(
            name="verdict_fluency",
            build=FluencyVeto.build,
            vetoes=True,
            cheap=True,
            meaning="the same, vetoed where the trace is degenerate by the rules or by a judge",
        ),
        RewardEntry(name="weighted", build=Weighted, cheap=True, meaning="a weighted sum of rewards"),
    ]
