"""Warm-start traces: they end in a verdict, and their checks are as reliable as the mix says."""

from dataclasses import replace
from random import Random

import pytest

from pv_lab.samples import make_sample
from pv_lab.trace_shares import repetitive
from pv_lab.traces import LOOKS, MODES, TraceMix, sample_trace
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict

NONE = dict.fromkeys(MODES, 0.0)
EXACT = TraceMix(**{**NONE, "long": 0.5, "verbose": 0.5}, miss=0, false_alarm=0, second_look=1, relook=0.3)


def draw(mix, count=400, difficulty=2, p_true=0.5, seed=0):
    for index in range(count):
        sample = make_sample(seed=seed, split="train", index=index, difficulty=difficulty, p_true=p_true)
        yield sample, *sample_trace(Random(index), sample.question, sample.steps, mix)


def test_every_trace_ends_in_a_verdict():
    for difficulty in range(1, 6):
        for _, text, _ in draw(TraceMix(), difficulty=difficulty):
            assert text.endswith(("### True", "### False"))
            assert text.count("###") == 1
            assert parse_verdict(text) is text.endswith("### True")


def test_every_mode_occurs_about_as_often_as_the_mix_says():
    drawn = [mode for _, _, mode in draw(TraceMix(), count=3000)]
    for mode in MODES:
        assert drawn.count(mode) / 3000 == pytest.approx(getattr(TraceMix(), mode), abs=0.03)


def test_exact_checks_are_always_right():
    for difficulty in range(1, 6):
        for sample, text, _ in draw(EXACT, difficulty=difficulty):
            assert parse_verdict(text) is sample.label, (sample.error_kind, text)


def test_a_rejection_names_the_first_wrong_step():
    for sample, text, _ in draw(EXACT, p_true=0.0):
        assert text.endswith(f"so S{sample.error_step} wrong ### False")


def test_checks_that_miss_everything_accept_everything():
    mix = TraceMix(**{**NONE, "long": 1.0}, miss=1, false_alarm=0)
    for _, text, _ in draw(mix, p_true=0.0):
        assert parse_verdict(text) is True


def test_false_alarms_reject_right_proofs_at_the_stated_rate():
    mix = TraceMix(**{**NONE, "long": 1.0}, miss=0, false_alarm=0.1)
    kept = [parse_verdict(text) for _, text, _ in draw(mix, count=2000, difficulty=5, p_true=1.0)]
    assert sum(kept) / 2000 == pytest.approx(0.9**6, abs=0.04)  # six steps, each must pass


def test_a_second_look_corrects_a_false_alarm():
    mix = TraceMix(**{**NONE, "verbose": 1.0}, miss=0, false_alarm=0.5, second_look=1, relook=0)
    drawn = list(draw(mix, p_true=1.0))
    assert all(parse_verdict(text) for _, text, _ in drawn)
    assert any("wait" in text for _, text, _ in drawn)


def test_traces_are_compact():
    lengths = [
        len(text.split()) for _, text, mode in draw(TraceMix(), difficulty=2) if mode in ("long", "verbose")
    ]
    assert 30 < sum(lengths) / len(lengths) < 70
    assert max(lengths) < 128


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"miss": 1.5}, r"miss=1.5 is no probability; give a number from 0 to 1"),
        ({"accept": 0.9}, r"add up to 1\.43.*must add up to 1"),
    ],
)
def test_a_bad_mix_says_what_is_allowed(changes, message):
    with pytest.raises(DataError, match=message):
        replace(TraceMix(), **changes)


def test_a_looping_trace_goes_round_at_the_first_step_and_ends_as_a_good_check_does():
    mix = TraceMix(**{**NONE, "loop": 1.0}, miss=1, second_look=1)
    for sample, text, mode in draw(mix):
        assert mode == "loop"
        assert repetitive(text.split())
        assert text.count(" S1 ") == LOOKS + (sample.error_step == 1)  # once more in "so S1 wrong"
        assert parse_verdict(text) is sample.label
    assert max(len(text.split()) for _, text, _ in draw(mix)) < 128


def test_what_a_mix_without_loops_draws_is_what_it_always_was():
    """The committed weights come from these draws."""
    drawn = [text for _, text, _ in draw(TraceMix(), count=12)]
    assert drawn[3] == "looks fine ### True"
    assert sum(map(len, drawn)) == 957
