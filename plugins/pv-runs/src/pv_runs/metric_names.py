"""Names of the metrics that pv-rl and its plugins log. `metrics.csv` lists them with meaning and unit."""

from pv_rl.metric_names import JUDGE, PREFIX, REWARD

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

SHORTEST, LONGEST = WEIGHT_SHARE + "length_q1", WEIGHT_SHARE + "length_q4"
WEIGHT_TRUE, WEIGHT_FALSE, WEIGHT_NONE = (WEIGHT_SHARE + f"verdict_{v}" for v in ("true", "false", "none"))
LENGTH_TRUE, LENGTH_FALSE, LENGTH_NONE = (
    f"{PREFIX}response_length/verdict_{verdict}" for verdict in ("true", "false", "none")
)
EFFECTIVE_FRACTION = PREFIX + "effective_responses_fraction"
WITHOUT_SIGNAL = PREFIX + "groups_without_signal"
ETA = PREFIX + "eta"
METRICS_FAILED = PREFIX + "metrics_failed"

REQUESTS, COST = JUDGE + "requests/sum", JUDGE + "usd/sum"
QUESTIONS_FAILED, DISK_ERRORS = JUDGE + "failed/sum", JUDGE + "disk_errors/sum"
CACHE_HITS = JUDGE + "cache_hit_rate"
LATENCY_P50, LATENCY_P95 = JUDGE + "latency_p50_s", JUDGE + "latency_p95_s"
EXPOSED_WAIT = JUDGE + "exposed_wait_s/sum"
UNREACHABLE = JUDGE + "unreachable"

HELD_OUT_FAILED = HELD_OUT + "failed"
ALARMS, ALERTNESS = SENTINEL + "alarms", SENTINEL + "alertness"
ROLLED_BACK_TO = SENTINEL + "rolled_back_to"
