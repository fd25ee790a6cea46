"""The sentinel's charts against numbers worked by hand, scipy, and simulated noise."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from sentinel_runs import WANDER, alarm_rate

from pv_runs.sentinel import DETECTORS, SentinelConfig
from pv_runs.sentinel.chart import Chart
from pv_runs.sentinel.level import Level, Memories, normal_score, student_score
from pv_runs.sentinel.path_length import PATH_LENGTH, PathLength
from pv_runs.sentinel.reading import (
    LEAST_LOG_NOISE,
    Reading,
    difference,
    logarithm,
    mean_of_two,
    number,
    share,
    speed,
)
from pv_runs.sentinel.run_length import average_run_length, threshold
from pv_runs.sentinel.swing import Swing

CONFIG = SentinelConfig(responses=128)
MEMORIES = CONFIG.memories
ONE_SIDED = replace(DETECTORS["entropy"], sides=("up",), slack=0.0)


def noisy_chart(seed: int, steps: int, at, detector=ONE_SIDED):
    """Step and signal of a chart on noise of variance 1 plus `at(step)`, with the default rate over 16 sides."""
    rng, chart, limit = random.Random(seed), Chart(), threshold(CONFIG.reference, 16_000.0)
    for step in range(1, steps + 1):
        x = rng.gauss(0, 1) + at(step)
        signal = chart.observe(step, Reading(value=x, scaled=x, least=1e-6), detector, CONFIG, limit)
        if signal is not None:
            yield step, signal


@pytest.mark.parametrize(
    ("limit", "shift", "steps"), [(4, 0, 335.4), (5, 0, 930.9), (4, 1, 8.38), (5, 1, 10.38)]
)
def test_run_lengths_are_those_of_the_textbook(limit, shift, steps):
    assert average_run_length(0.5, limit, shift) == pytest.approx(steps, rel=1e-3)


def test_run_length_is_near_siegmunds_approximation():
    k, h = 0.75, 5.0
    b = h + 1.166
    assert average_run_length(k, h) == pytest.approx(
        (math.exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k), rel=0.03
    )


def test_run_length_of_a_plain_cusum_by_simulation():
    rng, h = random.Random(1), threshold(0.75, 200.0)
    lengths = []
    for _ in range(1500):
        s = steps = 0
        while s <= h:
            s, steps = max(0.0, s + rng.gauss(0, 1) - 0.75), steps + 1
        lengths.append(steps)
    assert sum(lengths) / len(lengths) == pytest.approx(200, rel=0.1)  # standard error 2.6 %


def test_threshold_gives_the_run_length_that_was_asked_for():
    assert average_run_length(0.75, threshold(0.75, 16_000.0)) == pytest.approx(16_000, rel=1e-4)


@pytest.mark.parametrize("freedom", [5.5, 10, 50])
def test_scores_are_those_of_students_distribution(freedom):
    stats = pytest.importorskip("scipy.stats")
    for z in (-4, -2, -0.5, 0.5, 2, 4):
        t = float(stats.t.ppf(stats.norm.cdf(z), freedom))
        assert normal_score(t, freedom) == pytest.approx(z, abs=0.04)
        assert student_score(normal_score(t, freedom), freedom) == pytest.approx(t)


def test_a_level_by_hand():
    """Half is kept of the level: after 1, 3, 5 the weights are 1, 1.5, 1.75 and the means 1, 2.3333, 3.8571."""
    level, memories = Level(), Memories(kept_level=0.5, kept_noise=1.0)
    for value in (1.0, 3.0):
        assert level.score(value, 0.0, memories, 0.0) is None
        level.observe(value, memories, 0.0, cap=10)
    assert (level.mean, level.weight) == (pytest.approx(7 / 3), 1.5)
    assert (level.freedom, level.squares) == (1, 2)  # (3 - 1)^2 / 2
    # t^2 = (5 - 7/3)^2 / 2 / (1 + 1 / 0.75) = 32 / 21 with 2/3 degrees of freedom; 0.76 = (16/3 + 1) / (16/3 + 3)
    expected = 0.76 * math.sqrt(2 / 3 * math.log(1 + 16 / 7))
    assert level.score(5.0, level.mean, memories, 0.0) == pytest.approx(expected)
    assert level.score(6.0, level.mean + 1, memories, 0.0) == pytest.approx(expected)
    level.observe(5.0, memories, 0.0, cap=10)
    assert level.mean == pytest.approx(7 / 3 + 8 / 3 / 1.75)


def test_an_outlier_counts_as_one_at_the_cap():
    rng, far, farther = random.Random(0), Level(), Level()
    for x in [rng.gauss(0, 1) for _ in range(60)]:
        far.observe(x, MEMORIES, 0.0, cap=3.0)
        farther.observe(x, MEMORIES, 0.0, cap=3.0)
    mean = far.mean
    far.observe(100.0, MEMORIES, 0.0, cap=3.0)
    farther.observe(1e6, MEMORIES, 0.0, cap=3.0)
    assert far == farther
    assert mean < far.mean < mean + 0.2
    assert math.sqrt(far.variance(0.0)) < 1.5


def test_false_alarms_of_noise_are_fewer_than_the_stated_rate():
    assert 0.05 < alarm_rate(CONFIG, 100.0, seed=1, runs=100) < 0.5
    assert 0.05 < alarm_rate(CONFIG, 100.0, seed=2, runs=100, wander=WANDER) < 0.5


def test_correlated_noise_alarms_more_often_unless_the_config_says_so():
    said = replace(CONFIG, autocorrelation=0.3)
    assert alarm_rate(CONFIG, 100.0, seed=3, runs=60, correlation=0.3) > 0.4
    assert alarm_rate(said, 100.0, seed=3, runs=60, correlation=0.3) < 0.3


def test_a_drift_that_is_healthy_is_followed_and_a_faster_one_is_not():
    config_drift = CONFIG.drift  # log(2) / 10 a step, where noise has a standard deviation of 1

    def alarms(slope: float, **changes) -> int:
        detector = replace(ONE_SIDED, **changes)
        found = (noisy_chart(seed, 200, lambda step: slope * step, detector) for seed in range(20))
        return sum(len(list(signals)) for signals in found)

    assert alarms(config_drift / 2, drifts=("up",)) <= 1
    assert alarms(config_drift / 2, drifts=()) > 20
    assert alarms(2 * config_drift, drifts=("up",)) > 20
    assert alarms(-0.25, drifts=()) <= 1  # down is not a bad side here


def swings(*values: float, least: float = 0.5, drift: float = 0.0) -> Swing:
    swing = Swing()
    for value in values:
        swing.observe(value, least, drift)
    return swing


@pytest.mark.parametrize(
    ("values", "low", "largest", "allowed"),
    [
        ((5.0, 3.0, 2.0), 2, 0, 3),  # it gets better: the best so far and a slack of 1
        ((1.0, 2.0, 3.0, 4.0), 1, 0, 2),  # worse and worse, however slowly
        ((1.0, 2.0, 3.0, 5.0, 4.0), 1, 0, 2),  # not undone yet
        ((1.0, 2.0, 3.0, 5.0, 4.0, 3.0), 3, 4, 5.5),  # 4 was undone; 2.5 is the most
        ((1.0, 2.8, 1.0), 1, 1.8, 2.8),
        ((1.0, 1.4, 1.0), 1, 0, 2),  # noise
    ],
)
def test_a_swing_by_hand(values, low, largest, allowed):
    swing = swings(*values)
    assert (swing.low, swing.largest) == (low, pytest.approx(largest))
    assert swing.allows(1.0, 2.5) == pytest.approx(allowed)


def test_a_swing_follows_a_healthy_drift_and_begins_anew_after_an_alarm():
    assert swings(1.0, 1.4, 3.0, drift=0.5).low == pytest.approx(1.9)  # min(1.4, 1 + .5), + .5
    swing = swings(1.0, 4.0)
    swing.alarmed = 4.0
    assert swing.allows(1.0, 2.5) == 5.0
    swing.observe(0.5, 0.5, 0.0)
    assert swing.allows(1.0, 2.5) == 3.0  # the move of 3 was undone


def test_a_trend_adds_little_to_the_scatter():
    rng, level = random.Random(9), Level()
    for step in range(100):
        level.observe(0.3 * step + rng.gauss(0, 1), MEMORIES, 0.0, cap=4.0)
    assert 0.8 < math.sqrt(level.variance(0.0)) < 1.2  # 0.3^2 / 2 is added to 1


@pytest.mark.parametrize(("shift", "found", "median"), [(1.5, 60, 18), (3, 100, 5), (6, 100, 3)])
def test_a_shift_is_found_within_the_stated_steps(shift, found, median):
    delays = []
    for seed in range(100):
        signals = noisy_chart(seed, 150, lambda step: shift * (step > 50))
        delays += [step - 50 for step, _ in signals if step > 50][:1]
    assert len(delays) >= found
    assert sorted(delays)[len(delays) // 2] <= median


def test_the_change_point_and_the_level_before_are_near_the_truth():
    _, signal = next(noisy_chart(8, 100, lambda step: 10 + 4 * (step >= 61)))
    assert 58 <= signal.since <= 62
    assert signal.before == pytest.approx(10, abs=0.7)
    assert signal.direction == 1


def test_readings_by_hand():
    assert parts(share(0.0, 128)) == (0, pytest.approx(0.0540, abs=1e-4), pytest.approx(1 / 514))
    assert parts(share(1 / 128, 128)) == (1 / 128, pytest.approx(0.1035, abs=1e-4), pytest.approx(1 / 514))
    assert parts(logarithm(math.e)) == (math.e, pytest.approx(1), LEAST_LOG_NOISE**2)
    # (8 + 1) / (8 + 2) = 0.9 and (2 + 1) / (10 + 2) = 0.25: variances 0.9 x 0.1 / 8 and 0.25 x 0.75 / 10
    assert parts(difference(1.0, 0.2, (8, 10))) == (0.8, 0.8, pytest.approx(0.01125 + 0.01875))
    assert parts(mean_of_two(1.0, 0.2, (8, 10))) == (0.6, 0.6, pytest.approx(0.0075))
    assert parts(difference(0.9, 0.5, (8, math.inf))) == (0.4, 0.4, pytest.approx(0.82 * 0.18 / 8))


def test_a_speed_by_hand():
    assert parts(speed(0.0036, 10)) == (
        pytest.approx(0.006),
        pytest.approx(math.log(0.006)),
        LEAST_LOG_NOISE**2,
    )
    assert speed(0.0036, 10 * 2e-4).value == pytest.approx(30)
    assert speed(0.01, 0.0) is None  # before any update
    assert speed(0.0, 5) is None
    assert DETECTORS["policy_speed"].read({"kl_loss": 0.0036, PATH_LENGTH: 10}, 128) == speed(0.0036, 10)
    assert DETECTORS["policy_speed"].read({"kl_loss": 0.0036}, 128) is None


@pytest.mark.parametrize(
    ("steps", "rates", "ways"),
    [
        ([1, 2, 3], [2e-4, 2e-4, 2e-4], [0, 2e-4, 4e-4]),
        (
            [1, 2, 3, 4, 5],
            [1e-4, 2e-4, 3e-4, 3e-4, 0.0],
            [0, 0, 1e-4, 3e-4, 6e-4],
        ),  # verl's warm-up begins at 0
        ([1, 2, 3, 4], [2e-4, 3e-4, 4e-4, 5e-4], [0, 1e-4, 3e-4, 6e-4]),
        ([1, 2, 3], [None, None, None], [0, 1, 2]),
        ([1, 2, 3], [None, 2e-4, 2e-4], [0, 1, 2]),  # one unit for the whole run
        ([1, 2, 5, 6, 7], [2e-4, None, 1e-4, None, None], [0, 2e-4, 8e-4, 10e-4, 11e-4]),
        ([11, 12], [2e-4, 2e-4], [2e-3, 2.2e-3]),
        ([1, 2, 3], [2e-4, -1.0, 2e-4], [0, 2e-4, 4e-4]),
        ([1, 2, 2, 3], [2e-4, 2e-4, 9.0, 2e-4], [0, 2e-4, 2e-4, 4e-4]),
    ],
)
def test_the_way_is_the_sum_of_the_rates_of_the_updates_before(steps, rates, ways):
    way, gone = PathLength(), []
    for step, rate in zip(steps, rates, strict=True):
        gone.append(way.advance(step, rate, True))
        way = PathLength.from_dict(json.loads(json.dumps(vars(way))))
    assert gone == pytest.approx(ways)


@pytest.mark.parametrize("rate", [2e-4, None])
def test_steps_without_an_update_are_no_way(rate):
    """While a critic is warmed up the policy stands still, and where no row of a step counts it does too."""
    way = PathLength()
    gone = [
        way.advance(step, rate if step > 10 and step != 13 else None, step > 10 and step != 13)
        for step in range(1, 16)
    ]
    assert gone == pytest.approx([unit * (rate or 1) for unit in [0] * 11 + [1, 2, 2, 3]])


@pytest.mark.parametrize("kept_at", [19, 20])
def test_after_a_rollback_the_way_is_that_of_the_policy_that_was_gone_back_to(kept_at):
    """verl's V1 trainer saves a checkpoint before it logs the step, so that its state is of the step before."""
    way = PathLength()
    for step in range(1, kept_at + 1):
        way.advance(step, 2e-4, True)
    way.went_back(to=20, now=35)
    assert way.advance(36, 1e-4, True) == pytest.approx(20 * 2e-4)
    assert [way.advance(step, 1e-4, True) for step in (37, 38)] == pytest.approx(
        [21 * 2e-4, 21 * 2e-4 + 1e-4]
    )
    new = PathLength()
    new.went_back(to=20, now=35)
    assert [new.advance(step, 1e-4, True) for step in (36, 37)] == pytest.approx([20e-4, 21e-4])


@pytest.mark.parametrize(
    "saved", [{"total": -1.0}, {"own": math.nan}, {"rate": "fast"}, {"by_rate": 1}, {"far": 1}]
)
def test_a_way_that_cannot_be_is_refused(saved):
    with pytest.raises(TypeError):
        PathLength.from_dict(saved)


def test_the_largest_share_of_the_loop_rules_counts():
    rules = {"pv_rl/reward/rule_phrase_loop": 0.1, "pv_rl/reward/rule_ngram_loop": 0.3, "repetitive": 0.9}
    assert DETECTORS["repetition"].read(rules, 128) == share(0.3, 128)


def test_each_class_has_the_trials_of_its_label():
    step = {"right_proofs": 0.9, "wrong_proofs": 0.6, "label_true": 0.75}
    assert DETECTORS["class_gap"].read(step, 128) == difference(0.9, 0.6, (96, 32))
    assert DETECTORS["balanced_accuracy"].read(step | {"label_true": math.nan}, 128) == mean_of_two(
        0.9, 0.6, (64, 64)
    )


def parts(reading: Reading | None) -> tuple[float, float, float]:
    assert reading is not None
    return reading.value, reading.scaled, reading.least


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "0.5", b"1", True, None, [0.5, 0.6], {}])
def test_what_is_no_finite_number_is_no_number(value):
    assert number({"a": value}, "a") is None
    assert number({"a": value}, "b") is None


def test_numbers_of_numpy_are_numbers():
    np = pytest.importorskip("numpy")
    assert number({"a": np.float32(0.5)}, "a") == 0.5
    assert number({"a": np.array(2)}, "a") == 2


def test_impossible_values_are_no_readings():
    assert share(-0.01, 128) is None
    assert share(1.01, 128) is None
    assert logarithm(0.0) is None
    assert logarithm(-3.0) is None
    assert difference(0.5, 1.2, (8, 8)) is None
    assert mean_of_two(-0.5, 0.2, (8, 8)) is None
