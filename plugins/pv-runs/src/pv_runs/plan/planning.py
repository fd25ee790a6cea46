"""The plan of a run: memory, time and cost, estimated from its config."""

from __future__ import annotations

from dataclasses import dataclass

from omegaconf import DictConfig

from pv_runs.plan.findings import (
    Finding,
    Severity,
    cluster_findings,
    division_findings,
    memory_findings,
    run_findings,
    weighting_findings,
)
from pv_runs.plan.judge import JudgeCost, judge_cost, judge_findings, read_judge
from pv_runs.plan.memory import Memory, memory_of
from pv_runs.plan.remedy import Remedy, find_remedy
from pv_runs.plan.setup import Layout, Setup, layout_of, read_setup
from pv_runs.plan.step_time import StepTime, step_time
from pv_runs.plan.tokens import Counts, count
from pv_runs.typed_config import Settings

__all__ = ["Plan", "make_plan"]

ORDER: tuple[Severity, ...] = ("does not run", "does not fit", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run needs, takes and costs, as far as a config tells. Estimated, not measured."""

    setup: Setup
    """What it was computed from."""
    layout: Layout
    memory: Memory
    remedy: Remedy | None
    """What makes it fit; None: it fits."""
    counts: Counts
    time: StepTime
    judge: JudgeCost | None
    """None: there is no judge."""
    findings: tuple[Finding, ...]
    """The worst first."""

    @property
    def runs(self) -> bool:
        """Whether nothing was found that stops it."""
        return not any(one.severity in ("does not run", "does not fit") for one in self.findings)


def make_plan(config: DictConfig) -> Plan:
    """Estimate a run. Nothing is started, and verl is not imported (torch is, for a `loss_agg_mode` of ours).

    Args:
        config: verl's composed config with the nodes `cluster` and `plan`. Keys that the plan does not read may be
            missing or unresolvable.

    Raises:
        ConfigError: a key that is read is missing or not what it should be.
        DataError: the model's config.json cannot be read.
    """
    settings = Settings(config=config)
    setup, judge = read_setup(settings), read_judge(settings)
    counts, memory, remedy = count(setup), memory_of(setup), find_remedy(setup)
    cost = None if judge is None else judge_cost(setup, counts, judge)
    found = (
        *division_findings(setup),
        *cluster_findings(setup),
        *run_findings(setup),
        *weighting_findings(setup, settings.value("actor_rollout_ref.actor.loss_agg_mode", None)),
        *memory_findings(setup, memory, remedy.overrides if remedy is not None and remedy.fits else ()),
        *(judge_findings(judge, cost) if judge is not None and cost is not None else ()),
    )
    return Plan(
        setup=setup,
        layout=layout_of(setup),
        memory=memory,
        remedy=remedy,
        counts=counts,
        time=step_time(setup, counts, judged=judge is not None),
        judge=cost,
        findings=tuple(sorted(found, key=lambda one: ORDER.index(one.severity))),
    )
