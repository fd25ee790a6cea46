"""Whether the judge's budget is likely to be hit, and what its price leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from pv_runs.plan.finding import Finding
from pv_runs.plan.judge_cost import JudgeCost
from pv_runs.plan.judge_settings import JudgeSettings

__all__ = ["judge_findings"]

JUDGE = "reward.custom_reward_function.reward_kwargs.judge"


def judge_findings(judge: JudgeSettings, cost: JudgeCost) -> tuple[Finding, ...]:
    """Of the budget first."""
    return (*_budget(judge, cost), *_notes(judge))


def _budget(judge: JudgeSettings, cost: JudgeCost) -> Iterator[Finding]:
    """A limit that the expected cost reaches is a warning; one that only the longest responses reach is a note."""
    budget = judge.budget
    expected: tuple[tuple[str, float | None, float | None], ...] = (
        ("usd_per_step", budget.usd_per_step, cost.step_usd),
        ("usd_per_run", budget.usd_per_run, cost.run_usd),
        ("calls_per_step", budget.calls_per_step, cost.calls),
        ("calls_per_run", budget.calls_per_run, cost.run_calls),
    )
    for name, limit, needed in expected:
        if limit is not None and needed is not None and needed > limit:
            yield Finding(
                severity="warning",
                text=f"the judge's {name} is {limit:g} and {needed:.4g} are expected: what comes after it is not "
                "judged (on_budget)",
                overrides=(f"++{JUDGE}.budget.{name}={_above(needed)}",),
            )
    limit, longest, step = budget.usd_per_step, cost.longest_step_usd, cost.step_usd
    if limit is not None and longest is not None and step is not None and step <= limit < longest:
        yield Finding(
            severity="note",
            text=f"the judge's usd_per_step is {limit:g}; a step of the longest responses could take {longest:.3g}",
        )


def _notes(judge: JudgeSettings) -> Iterator[Finding]:
    if judge.model is None:
        text = (
            "the judge's model is named by an environment variable that is not set here, so no price is told"
        )
        yield Finding(severity="note", text=text)
    elif judge.price is None:
        yield Finding(
            severity="note",
            text=f"the config has no price of the judge's model {judge.model} ({JUDGE}.prices)",
        )
    if judge.served_here:
        text = "verl serves the judge; its GPUs (reward.reward_model) and its time are not counted"
        yield Finding(severity="note", text=text)
    if not judge.judges_unpaid:
        yield Finding(
            severity="note",
            text="judge_unpaid is off, so only responses with a reward are asked about: fewer",
        )


def _above(needed: float) -> str:
    """A round limit with room to spare."""
    return f"{max(1.0, 2 * needed):.0f}"
