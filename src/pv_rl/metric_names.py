"""Names of the metrics of a run with pv-rl alone. pv_runs has those of the plugins, and the catalogue `metrics.csv`."""

PREFIX = "pv_rl/"
REWARD = PREFIX + "reward/"
JUDGE = PREFIX + "judge/"

UPDATE_SKIPPED = PREFIX + "update_skipped"
UPDATE_MASS = PREFIX + "update_mass"
TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN = PREFIX + "token_weight_max", PREFIX + "token_weight_min"
