"""Catalogue of the metric names that pv-rl and its plugins log, with meaning and unit.

A module that logs or reads a metric takes its name from here. `describe` finds the entry of a logged name.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ["CATALOGUE", "Metric", "describe"]


class Metric(NamedTuple):
    """One metric, or a family of them."""

    name: str
    """As verl logs it. `*` stands for what differs in a family: a rule, a slice, a kind of failure."""
    meaning: str
    unit: str


CATALOGUE: list[Metric] = []

RESPONSES = "share of responses"
WEIGHT = "share of the update's weight"
SLICES = ("", "slice/*/")


def describe(name: str) -> Metric | None:
    """The entry of a metric that verl has logged, the most exact one; None if it is not one of ours."""
    found = [one for one in CATALOGUE if fnmatchcase(name, one.name)]
    return max(found, key=lambda one: len(one.name), default=None)


def _add(name: str, meaning: str, unit: str) -> str:
    CATALOGUE.append(Metric(name, meaning, unit))
    return name


PREFIX = "pv_rl/"
REWARD = PREFIX + "reward/"
JUDGE = PREFIX + "judge/"
HELD_OUT = PREFIX + "held_out/"
SENTINEL = PREFIX + "sentinel/"

# Rewards of a step
SCORE = _add(REWARD + "score", "mean reward of the responses that have one", "reward")
ABSTAINED = _add(REWARD + "abstained", "responses without a reward", RESPONSES)
ACC = _add(REWARD + "acc", "right verdicts", RESPONSES)
ACC_RIGHT = _add(REWARD + "acc/label_true", "right proofs that are accepted", "share of right proofs")
ACC_WRONG = _add(REWARD + "acc/label_false", "wrong proofs that are rejected", "share of wrong proofs")
VERDICT_TRUE = _add(REWARD + "verdict_true", "responses that accept the proof", RESPONSES)
VERDICT_MISSING = _add(REWARD + "verdict_missing", "responses without a verdict", RESPONSES)
LABEL_TRUE = _add(REWARD + "label_true", "responses to a right proof", RESPONSES)
VETOED = _add(REWARD + "vetoed", "responses that the fluency veto refuses", RESPONSES)
VETOED_BY_JUDGE = _add(REWARD + "vetoed_by_judge", "responses that the judge vetoes", RESPONSES)
JUDGE_FAILED = _add(REWARD + "judge_failed", "responses for which the judge gave no answer", RESPONSES)
UNJUDGED = _add(REWARD + "unjudged", "responses that the judge was not asked about", RESPONSES)
REWARD_FAILED = _add(REWARD + "error", "responses for which the reward failed", RESPONSES)
RULE = REWARD + "rule_"
_add(RULE + "*", "responses that a degeneration rule hits", RESPONSES)
_add(REWARD + "*", "mean of a number in the reward's extra info", "as the reward gives it")
UPDATE_SKIPPED = _add(PREFIX + "update_skipped", "1: no update, because no response has a reward", "0 or 1")

# Weights of a step, see `pv_rl.losses.diagnose`
WEIGHT_SHARE = PREFIX + "weight_share/"
_add(WEIGHT_SHARE + "length_q*", "weight of a quarter of the responses by length, q1 the shortest", WEIGHT)
_add(WEIGHT_SHARE + "advantage_*", "weight of the responses by the sign of the advantage", WEIGHT)
_add(WEIGHT_SHARE + "verdict_*", "weight of the responses by verdict", WEIGHT)
_add(WEIGHT_SHARE + "*/verdict_*", "weight by length or advantage, split by verdict", WEIGHT)
SHORTEST, LONGEST = WEIGHT_SHARE + "length_q1", WEIGHT_SHARE + "length_q4"
WEIGHT_TRUE, WEIGHT_FALSE, WEIGHT_NONE = (
    f"{WEIGHT_SHARE}verdict_{said}" for said in ("true", "false", "none")
)
LENGTH_TRUE, LENGTH_FALSE, LENGTH_NONE = (
    _add(f"{PREFIX}response_length/verdict_{said}", f"mean length of {what}", "tokens")
    for said, what in (
        ("true", "accepting responses"),
        ("false", "rejecting responses"),
        ("none", "responses without a verdict"),
    )
)
EFFECTIVE = _add(PREFIX + "effective_responses", "how many equal responses would be as even", "responses")
EFFECTIVE_FRACTION = _add(PREFIX + "effective_responses_fraction", "the same over their number", RESPONSES)
WITHOUT_SIGNAL = _add(
    PREFIX + "groups_without_signal", "prompts whose advantages are all 0", "share of prompts"
)
ETA = _add(PREFIX + "eta", "eta of the loss mode: 0 weighs by token, 1 by response", "")
_add(PREFIX + "alpha", "exponent of the loss mode vl_norm", "")
_add(PREFIX + "max_length", "denominator of the loss mode dr_grpo", "tokens")
METRICS_FAILED = _add(PREFIX + "metrics_failed", "1: the weight metrics could not be computed", "0 or 1")
UPDATE_MASS = PREFIX + "update_mass"
TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN = PREFIX + "token_weight_max", PREFIX + "token_weight_min"
for _part in ("actor/", "critic/"):
    _add(_part + UPDATE_MASS, "sum of weight times length over a mini-batch", "1 on average")
    _add(_part + TOKEN_WEIGHT_MAX, "largest weight of a token", "weight")
    _add(_part + TOKEN_WEIGHT_MIN, "smallest weight of a token that counts", "weight")

# The judge
REQUESTS = _add(JUDGE + "requests/sum", "requests sent", "requests a step")
_add(JUDGE + "tokens/sum", "tokens of prompts and answers", "tokens a step")
COST = _add(JUDGE + "usd/sum", "cost", "$ a step")
_add(JUDGE + "usd_run/max", "cost of the run so far", "$")
QUESTIONS_FAILED = _add(JUDGE + "failed/sum", "questions without an answer", "questions a step")
_add(JUDGE + "failed/*/sum", "the same by kind of failure", "questions a step")
DISK_ERRORS = _add(JUDGE + "disk_errors/sum", "writes of cache or ledger that failed", "a step")
CACHE_HITS = _add(JUDGE + "cache_hit_rate", "answers from the cache", "share of questions")
LATENCY_P50 = _add(JUDGE + "latency_p50_s", "median time to an answer", "s")
LATENCY_P95 = _add(JUDGE + "latency_p95_s", "95th percentile of the time to an answer", "s")
EXPOSED_WAIT = _add(
    JUDGE + "exposed_wait_s/sum", "time in which the trainer waited for rewards alone", "s a step"
)
UNREACHABLE = _add(JUDGE + "unreachable", "1: the judge did not report", "0 or 1")
_add(JUDGE + "*/sum", "events of the judge's client and service", "a step")
_add(JUDGE + "*/max", "largest value of the run", "")

# A validation, see `pv_runs.held_out_metrics`
for _slice in SLICES:
    _add(f"{HELD_OUT}{_slice}rows", "rows that have a reward", "rows")
    _add(f"{HELD_OUT}{_slice}acc", "right verdicts", "share of rows")
    _add(
        f"{HELD_OUT}{_slice}acc/label_*",
        "right verdicts over right (true) or wrong proofs",
        "share of proofs",
    )
    _add(f"{HELD_OUT}{_slice}balanced", "mean of the accuracies over right and wrong proofs", "share")
    _add(f"{HELD_OUT}{_slice}accepted", "proofs that are accepted", "share of rows")
    _add(f"{HELD_OUT}{_slice}missing", "responses without a verdict", "share of rows")
_add(HELD_OUT + "abstained", "rows without a reward", "share of rows")
_add(HELD_OUT + "length", "mean length of a response", "characters")
_add(HELD_OUT + "length/*", "mean length by verdict", "characters")
_add(HELD_OUT + "length/*/acc", "right verdicts of a third of the rows by length", "share of rows")
HELD_OUT_FAILED = _add(HELD_OUT + "failed", "1: the metrics of a validation could not be computed", "0 or 1")

# The sentinel
ALARMS = _add(SENTINEL + "alarms", "alarms of a step", "alarms")
ALERTNESS = _add(SENTINEL + "alertness", "how near the nearest sign is to an alarm", "1 is an alarm")
ROLLED_BACK_TO = _add(SENTINEL + "rolled_back_to", "step of the checkpoint that the run went back to", "step")
