"""Names of the metrics that pv-rl and its plugins log. `metrics.csv` is their catalogue, with meaning and unit.

A module that logs or reads a metric takes its name from here. `describe` finds the entry of a logged name.
"""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Metric", "catalogue", "describe"]

PREFIX = "pv_rl/"
REWARD = PREFIX + "reward/"
JUDGE = PREFIX + "judge/"
HELD_OUT = PREFIX + "held_out/"
SENTINEL = PREFIX + "sentinel/"
WEIGHT_SHARE = PREFIX + "weight_share/"

SCORE = REWARD + "score"
ABSTAINED = REWARD + "abstained"
ACC_RIGHT, ACC_WRONG = REWARD + "acc_label_true", REWARD + "acc_label_false"
VERDICT_TRUE, VERDICT_MISSING = REWARD + "verdict_true", REWARD + "verdict_missing"
LABEL_TRUE = REWARD + "label_true"
VETOED, VETOED_BY_JUDGE = REWARD + "vetoed", REWARD + "vetoed_by_judge"
JUDGE_FAILED, UNJUDGED, REWARD_FAILED = REWARD + "judge_failed", REWARD + "unjudged", REWARD + "error"
RULE = REWARD + "rule_"
UPDATE_SKIPPED = PREFIX + "update_skipped"

SHORTEST, LONGEST = WEIGHT_SHARE + "length_q1", WEIGHT_SHARE + "length_q4"
WEIGHT_TRUE, WEIGHT_FALSE, WEIGHT_NONE = (WEIGHT_SHARE + f"verdict_{v}" for v in ("true", "false", "none"))
LENGTH_TRUE, LENGTH_FALSE, LENGTH_NONE = (
    f"{PREFIX}response_length/verdict_{verdict}" for verdict in ("true", "false", "none")
)
EFFECTIVE_FRACTION = PREFIX + "effective_responses_fraction"
WITHOUT_SIGNAL = PREFIX + "groups_without_signal"
ETA = PREFIX + "eta"
METRICS_FAILED = PREFIX + "metrics_failed"
UPDATE_MASS = PREFIX + "update_mass"
TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN = PREFIX + "token_weight_max", PREFIX + "token_weight_min"

REQUESTS, COST = JUDGE + "requests/sum", JUDGE + "usd/sum"
QUESTIONS_FAILED, DISK_ERRORS = JUDGE + "failed/sum", JUDGE + "disk_errors/sum"
CACHE_HITS = JUDGE + "cache_hit_rate"
LATENCY_P50, LATENCY_P95 = JUDGE + "latency_p50_s", JUDGE + "latency_p95_s"
EXPOSED_WAIT = JUDGE + "exposed_wait_s/sum"
UNREACHABLE = JUDGE + "unreachable"

HELD_OUT_FAILED = HELD_OUT + "failed"
ALARMS, ALERTNESS = SENTINEL + "alarms", SENTINEL + "alertness"
ROLLED_BACK_TO = SENTINEL + "rolled_back_to"


class Metric(NamedTuple):
    """One metric, or a family of them."""

    name: str
    """As verl logs it. `*` stands for what differs in a family: a rule, a slice, a kind of failure."""
    meaning: str
    unit: str


@cache
def catalogue() -> tuple[Metric, ...]:
    """All metrics of pv-rl and of the plugins in its repository."""
    lines = (files("pv_rl") / "metrics.csv").read_text(encoding="utf-8").splitlines()
    return tuple(Metric(*line) for line in list(csv.reader(lines))[1:])


def describe(name: str) -> Metric | None:
    """The entry of a metric that verl has logged, the most exact one; None if it is not one of ours."""
    found = [one for one in catalogue() if fnmatchcase(name, one.name)]
    return max(found, key=lambda one: len(one.name), default=None)
