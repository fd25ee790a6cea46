"""Falls of held-out accuracy: which are an alarm, what it says, and what is remembered."""

from __future__ import annotations

import json
import random

import pytest
from validations import validation

from pv_rl.errors import ConfigError, DataError
from pv_runs.sentinel import AlarmPolicy, AlarmPolicyConfig, SentinelConfig, Watcher
from pv_runs.sentinel.held_out import HeldOut

VETOED = "pv_rl/reward/vetoed"
BEST = {"step": 0, "right": 0.5, "wrong": 0.5, "right_proofs": 50.0, "wrong_proofs": 50.0}
SLICE = {"best": BEST, "near": 0, "told": None}


def watcher(**settings) -> Watcher:
    return Watcher(SentinelConfig(responses=128, **settings))


def test_a_fall_raises_an_alarm_that_names_the_best_step():
    one = watcher()
    assert one.validated(0, validation(gsm8k=0.6, geometry=0.5)) == []
    assert one.observe(10, validation(gsm8k=0.7, geometry=0.55) | {VETOED: 0.1}) == []
    (alarm,) = one.observe(20, validation(gsm8k=0.75, geometry=0.25) | {VETOED: 0.1})
    assert (alarm.sign, alarm.kind, alarm.step, alarm.since) == ("held_out", "held_out", 20, 11)
    assert (alarm.expected, alarm.value) == (0.55, 0.25)
    assert alarm.statistic == pytest.approx(0.3)
    assert alarm.threshold == pytest.approx(4 * (2 * 0.401 * 0.599 * 2 / 100) ** 0.5 / 2, rel=1e-3)
    assert alarm.band == (pytest.approx(0.55 - alarm.threshold), None)
    assert "on geometry from 0.55 at step 10 to 0.25 (75% without a verdict)" in alarm.sentence
    assert "gsm8k" not in alarm.sentence
    json.dumps(alarm.to_dict(), allow_nan=False)


def test_all_slices_that_fell_are_one_alarm_that_began_after_the_earliest_best():
    one = watcher()
    one.validated(0, validation(a=0.9, b=0.5))
    one.validated(10, validation(a=0.8, b=0.9))
    (alarm,) = one.validated(20, validation(a=0.5, b=0.4))
    assert alarm.sentence.index("on b from 0.9") < alarm.sentence.index("on a from 0.9")
    assert (alarm.since, alarm.value) == (1, 0.4)


def test_a_fall_began_after_the_last_validation_that_was_nearly_as_good_as_the_best():
    one = watcher()
    for step, accuracy in ((10, 0.82), (20, 0.8), (30, 0.81), (40, 0.72)):
        assert one.validated(step, validation(a=accuracy)) == []
    (alarm,) = one.validated(50, validation(a=0.5))
    assert "from 0.82 at step 10" in alarm.sentence
    assert alarm.since == 31


def test_a_high_accuracy_of_a_few_proofs_hides_no_fall():
    one = watcher()
    one.validated(0, validation(200, a=0.8))
    one.validated(10, validation(4, a=1.0))
    (alarm,) = one.validated(20, validation(200, a=0.4))
    assert "from 0.8 at step 0 to 0.4" in alarm.sentence
    few = watcher()
    few.validated(0, validation(4, a=1.0))
    few.validated(10, validation(200, a=0.8))
    assert few.validated(20, validation(200, a=0.4))


def test_a_fall_from_a_best_of_few_proofs_names_that_best():
    one = watcher()
    one.validated(0, validation(10, a=0.6))
    (alarm,) = one.validated(10, validation(10_000, a=0.05))
    assert "from 0.6 at step 0 to 0.05" in alarm.sentence


def test_of_many_slices_the_lowest_are_named():
    one = watcher()
    one.validated(0, validation(**{f"s{number}": 0.9 for number in range(8)}))
    (alarm,) = one.validated(10, validation(**{f"s{number}": number / 20 for number in range(8)}))
    assert "on s4 from 0.9 at step 0 to 0.2 (80% without a verdict) and on 3 more. Read" in alarm.sentence
    assert "on s5" not in alarm.sentence


def test_without_slices_all_rows_are_one():
    one = watcher()
    one.validated(0, validation(putnam=0.8))
    (alarm,) = one.validated(10, validation(putnam=0.5))
    assert "on all proofs from 0.8 at step 0 to 0.5" in alarm.sentence


def test_where_slices_were_seen_all_rows_may_be_others_and_are_not_compared():
    one = watcher()
    one.validated(0, validation(easy=0.9))
    one.validated(10, validation(easy=0.9, hard=0.4))
    assert one.validated(20, validation(hard=0.4)) == []  # the judge failed for the other rows
    assert one.validated(30, validation(easy=0.5, hard=0.4))


def test_a_slice_with_one_class_is_left_out_and_the_others_are_not():
    one = watcher()
    part = {name: value for name, value in validation(a=0.9, b=0.9).items() if "a/acc_label_true" not in name}
    one.validated(0, part)
    (alarm,) = one.validated(10, validation(a=0.1, b=0.1))
    assert "fallen on b from" in alarm.sentence
    assert "on a from" not in alarm.sentence


def test_a_share_without_a_verdict_that_is_not_known_is_not_named():
    one = watcher()
    one.validated(0, validation(a=0.9))
    known = {name: value for name, value in validation(a=0.1).items() if not name.endswith("missing")}
    (alarm,) = one.validated(10, known)
    assert "without a verdict" not in alarm.sentence


@pytest.mark.parametrize(
    ("rows", "to", "alarms"), [(100, 0.5, 0), (100, 0.3, 1), (1000, 0.58, 1), (10_000, 0.61, 0)]
)
def test_a_fall_within_the_noise_of_its_rows_or_within_the_slack_is_no_alarm(rows, to, alarms):
    one = watcher()
    one.validated(0, validation(rows, a=0.7))
    assert len(one.validated(10, validation(rows, a=to))) == alarms


def test_a_verifier_that_learns_to_reject_all_is_found_by_what_it_lost():
    one = watcher()
    one.validated(0, validation(a=(0.85, 0.85)))
    assert one.validated(10, validation(a=(0.05, 1.0)))


def test_answers_to_one_proof_count_as_one():
    found = validation(80, answers=2, x=0.5)
    counts = [found[f"pv_rl/held_out/{name}"] for name in ("rows", "proofs_label_true", "proofs_label_false")]
    assert counts == [80, 20, 20]
    for answers, alarms in ((1, 1), (8, 0)):
        one = watcher()
        one.validated(0, validation(400, answers, a=0.7, b=0.7))
        assert len(one.validated(10, validation(400, answers, a=0.5, b=0.7))) == alarms


@pytest.mark.parametrize(("right_proofs", "wrong_proofs", "alarms"), [(10, 990, 0), (990, 10, 1)])
def test_a_class_with_few_proofs_is_as_noisy_as_it_is(right_proofs, wrong_proofs, alarms):
    def uneven(right: float) -> dict[str, float]:
        names = {"acc_label_true": right, "acc_label_false": 1.0}
        names |= {"proofs_label_true": float(right_proofs), "proofs_label_false": float(wrong_proofs)}
        return {f"pv_rl/held_out/{name}": value for name, value in names.items()}

    one = watcher()
    one.validated(0, uneven(0.9))
    assert len(one.validated(10, uneven(0.4))) == alarms  # five of ten proofs, or of 990


def test_a_log_that_does_not_count_proofs_is_not_watched():
    without = {name: value for name, value in validation(a=0.9).items() if "proofs" not in name}
    one = HeldOut(0.1)
    one.observe(0, without)
    assert one.last_step == -1


def test_one_fall_is_one_alarm_and_a_further_one_is_another():
    one = watcher()
    steps = [0.9, 0.6, 0.6, 0.58, 0.3, 0.9, 0.6]
    alarms = [alarm for step, value in enumerate(steps) for alarm in one.validated(step, validation(a=value))]
    assert [alarm.step for alarm in alarms] == [1, 4, 6]
    assert [alarm.since for alarm in alarms] == [1, 1, 6]  # a checkpoint of step 1 to 4 is not a good one
    assert "from 0.9 at step 0 to 0.3" in alarms[1].sentence


def test_a_validation_is_looked_at_once_and_a_line_without_one_is_none():
    one = HeldOut(0.1)
    one.observe(0, validation(a=0.9))
    one.observe(5, {VETOED: 0.1})
    assert one.last_step == 0
    assert one.observe(0, validation(a=0.1)) == []
    assert one.observe(1, {"pv_rl/held_out/balanced": 0.1}) == []
    assert one.observe(2, {name: float("nan") for name in validation(a=0.1)}) == []
    assert len(one.observe(3, validation(a=0.1))) == 1


@pytest.mark.parametrize("odd", [1.7e308, 1e16, 10**400, -1, 0, True, "100", float("inf"), [100]])
@pytest.mark.parametrize("name", ["proofs_label_true", "proofs_label_false", "acc_label_true", "missing"])
def test_odd_numbers_end_no_run_and_give_a_state_that_can_be_read(name, odd):
    one = watcher()
    one.validated(0, validation(a=(0.9, 0.8)) | {f"pv_rl/held_out/{name}": odd})
    one.validated(10, validation(a=(0.3, 0.2)) | {f"pv_rl/held_out/{name}": odd})
    state = json.loads(json.dumps(one.state(), allow_nan=False))
    assert Watcher.restore(one.config, state).state() == state


def test_false_alarms_are_rare():
    """100 proofs in three slices, 20 validations of a verifier that stays as it is."""
    rng, alarmed = random.Random(0), 0

    def share() -> float:
        return sum(rng.random() < 0.7 for _ in range(50)) / 50

    for _ in range(100):
        one = HeldOut(0.1)
        for step in range(20):
            noisy = {name: (share(), share()) for name in "abc"}
            alarmed += bool(one.observe(step, validation(100, **noisy)))
    assert alarmed <= 5


def test_false_alarms_are_rare_with_many_slices_and_validations_and_with_five_proofs_of_a_class():
    """At most one in 1,000 validations, whatever is in one."""
    rng, alarmed = random.Random(0), 0
    one = [HeldOut(0.1) for _ in range(20)]
    for step in range(50):
        for each in one:
            metrics = {}
            for number in range(20):
                few, many = (sum(rng.random() < 0.5 for _ in range(size)) / size for size in (5, 45))
                numbers = {"acc_label_true": few, "acc_label_false": many, "balanced": (few + many) / 2}
                numbers |= {"proofs_label_true": 5.0, "proofs_label_false": 45.0}
                metrics |= {f"pv_rl/held_out/slice/{number}/{name}": value for name, value in numbers.items()}
            alarmed += bool(each.observe(step, metrics))
    assert alarmed <= 1


def test_many_slices_and_validations_require_a_larger_fall():
    names = "abcdefghij"
    allowed = []
    for validations in (1, 100):
        one = HeldOut(0.1)
        for step in range(validations):
            one.observe(step, validation(100, **dict.fromkeys(names, 0.7)))
        (fall, *_) = one.observe(200, validation(100, **dict.fromkeys(names, 0.3)))
        allowed.append(fall.allowed)
    assert allowed[1] / allowed[0] == pytest.approx(
        4.75 / 4, rel=1e-3
    )  # one in 1,000 of 10 x 100 comparisons


def test_a_slack_of_one_watches_nothing_and_others_are_refused():
    one = watcher(held_out_slack=1.0)
    one.validated(0, validation(10_000, a=1.0))
    assert one.validated(1, validation(10_000, a=0.0)) == []
    with pytest.raises(ConfigError, match=r"held_out_slack is 1\.5; give a number from 0 to 1"):
        watcher(held_out_slack=1.5)


def test_the_state_survives_json_and_states_from_before_have_none():
    one = watcher()
    one.validated(0, validation(a=0.9))
    state = json.loads(json.dumps(one.state()))
    again = Watcher.restore(one.config, state)
    assert again.validated(0, validation(a=0.2)) == []  # this one it knows
    assert again.validated(10, validation(a=0.2))
    del state["held_out"]
    assert Watcher.restore(one.config, state).validated(10, validation(a=0.2)) == []


def test_a_slice_that_a_resume_adds_is_compared_with_the_validation_of_the_resume():
    one = watcher()
    one.validated(10, validation(a=0.9, b=0.9))
    again = Watcher.restore(one.config, one.state())
    assert again.validated(10, validation(a=0.9, b=0.5, c=0.9)) == []
    (alarm,) = again.validated(20, validation(a=0.9, b=0.9, c=0.5))
    assert "fallen on c from 0.9 at step 10 to 0.5" in alarm.sentence


KNOWN = {"last_step": 0, "validations": 1, "slices": {"a": SLICE}}


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        {},
        KNOWN | {"last_step": "1"},
        KNOWN | {"last_step": 10**13},
        KNOWN | {"validations": None},
        KNOWN | {"slices": [1]},
        KNOWN | {"slices": {"a": {"best": BEST}}},
        KNOWN | {"slices": {"a": SLICE | {"near": 1.5}}},
        *(
            KNOWN | {"slices": {"a": SLICE | {place: BEST | wrong}}}
            for place in ("best", "told")
            for wrong in (
                {"step": -7},
                {"right": 2.0},
                {"right": True},
                {"wrong": "0.5"},
                {"right_proofs": 0.0},
                {"wrong_proofs": None},
                {"more": 1},
            )
        ),
    ],
)
def test_a_damaged_state_is_refused(damaged):
    known = watcher().state() | {"held_out": KNOWN}
    assert Watcher.restore(watcher().config, known).state() == known
    state = watcher().state() | {"held_out": damaged}
    with pytest.raises(DataError, match="delete it, and the sentinel learns anew"):
        Watcher.restore(watcher().config, state)


def guard(tmp_path, **given) -> AlarmPolicy:
    config = AlarmPolicyConfig.read(given)
    return AlarmPolicy(config, Watcher(config.watching(128)), tmp_path / "sentinel.jsonl")


def test_a_guard_compares_with_the_validation_before_the_first_step_and_counts_it_as_a_family(tmp_path):
    limits = {"veto_rate": (None, 0.5)}
    one = guard(tmp_path, action="stop", watch={"limits": limits})
    one.observe(0, validation(a=0.9))
    one.observe(1, {VETOED: 0.1})
    one.observe(2, {VETOED: 0.9})
    assert one.take() is None
    assert one.observe(3, validation(a=0.3) | {VETOED: 0.9})["pv_rl/sentinel/alarms"] == 1
    due = one.take()
    assert (due.action, due.since) == ("stop", 1)
    assert "held-out balanced accuracy" in due.reason


def test_a_guard_reads_a_validation_on_a_line_of_its_own(tmp_path):
    one = guard(tmp_path)
    one.observe(1, {VETOED: 0.1})
    one.observe(1, validation(a=0.9))
    one.observe(2, {VETOED: 0.1})
    assert one.observe(2, validation(a=0.3)) == {"pv_rl/sentinel/alarms": 1.0}
    assert one.observe(2, validation(a=0.3)) == {}
    (event,) = [json.loads(line) for line in one.file.read_text().splitlines()]
    assert (event["event"], event["sign"], event["step"]) == ("alarm", "held_out", 2)


def test_before_the_first_watched_step_a_validation_is_only_remembered(tmp_path):
    one = guard(tmp_path, from_step=10)
    one.observe(0, validation(a=0.9))
    one.observe(5, validation(a=0.6))
    one.observe(8, validation(a=0.9) | {VETOED: 0.1})
    assert not one.file.exists()
    one.observe(10, validation(a=0.6))
    assert one.file.exists()


@pytest.mark.parametrize("more", [{}, {VETOED: 0.1}])
def test_a_fall_before_the_first_watched_step_that_lasts_is_told_then(tmp_path, more):
    one = guard(tmp_path, from_step=10)
    one.observe(0, validation(a=0.9))
    one.observe(5, validation(a=0.3) | more)
    assert not one.file.exists()
    one.observe(10, validation(a=0.3) | more)
    (event,) = [json.loads(line) for line in one.file.read_text().splitlines()]
    assert "from 0.9 at step 0 to 0.3" in event["sentence"]


def test_the_validation_of_the_step_of_a_rollback_is_not_compared(tmp_path):
    one = guard(tmp_path, action="rollback")
    one.observe(1, validation(a=0.9) | {VETOED: 0.1})
    known = json.loads(json.dumps(one.state()))
    one.went_back(1, 8, known)
    one.observe(8, validation(a=0.2) | {VETOED: 0.1})
    assert not one.file.exists()
    one.observe(9, validation(a=0.2) | {VETOED: 0.1})
    assert one.file.exists()
