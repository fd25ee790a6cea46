"""Stop reading once the outcome is certain: the same decisions, fewer proofs."""

from __future__ import annotations

from bisect import bisect_left

from pv_data.audit.plan import Plan, Stage

__all__ = ["curtailed"]


def curtailed(plan: Plan, name: str | None = None) -> Plan:
    """The plan with a look after each proof, at which only what cannot change any more is decided.

    Every slice ends as it would have, so the acceptance probability stays the same. What is lost is the rest of the
    sample: an accepted slice has `implied_bound` of the plan, not a bound from its counts, which were stopped when
    they were good.

    Example: of "27 of 30", the fourth disagreement discards and the 27th agreement accepts.
    """
    stages = []
    for n in range(1, plan.most + 1):
        ahead = [stage for stage in plan.stages if stage.checked >= n]
        # More agreements never make the outcome worse, so the two extreme continuations are all there is to look at.
        accept = bisect_left(range(n + 1), True, key=lambda k, n=n, ahead=ahead: _accepts(ahead, n, k, 0))
        reject = bisect_left(range(n + 1), True, key=lambda k, n=n, ahead=ahead: _accepts(ahead, n, k, 1)) - 1
        if accept <= n or reject >= 0:
            stages.append(
                Stage(
                    checked=n,
                    accept=accept if accept <= n else None,
                    reject=reject if reject >= 0 else None,
                )
            )
    return Plan(name=name or f"{plan.name}, curtailed", stages=tuple(stages))


def _accepts(ahead: list[Stage], n: int, k: int, each: int) -> bool:
    """The outcome after k of n agreed, if all later proofs agree (`each` 1) or none does (0)."""
    for stage in ahead:
        agree = k + each * (stage.checked - n)
        if stage.accept is not None and agree >= stage.accept:
            return True
        if stage.reject is not None and agree <= stage.reject:
            return False
    raise AssertionError("the last stage of a plan decides")  # Plan checks it
