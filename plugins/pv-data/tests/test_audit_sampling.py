"""Which questions and proofs are read."""

from __future__ import annotations

import random

import pytest
from scipy.stats import chisquare

from pv_data.audit import Rounds, cumulative_samples, pilot_proofs, pilot_questions
from pv_rl.errors import ConfigError, DataError

IDS = [f"question {place}" for place in range(200)]


def test_the_pilot_is_a_twentieth_rounded_up():
    assert len(pilot_questions(IDS)) == 10
    assert len(pilot_questions(IDS[:100])) == 5  # 0.05 x 100 is 5, also where floats make it a little more
    assert len(pilot_questions(IDS[:101])) == 6
    assert len(pilot_questions(IDS[:1])) == 1
    assert pilot_questions([]) == ()
    assert set(pilot_questions(IDS, 1)) == set(IDS)


def test_the_pilot_depends_on_the_seed_and_not_on_the_order():
    mixed = random.Random(0).sample(IDS, len(IDS))
    assert pilot_questions(mixed, seed=3) == pilot_questions(IDS, seed=3)
    assert pilot_questions(IDS, seed=4) != pilot_questions(IDS, seed=3)


def test_a_larger_pilot_contains_the_smaller():
    small, large = pilot_questions(IDS, 0.05), pilot_questions(IDS, 0.2)
    assert large[: len(small)] == small


def test_a_pilot_is_pinned_so_that_a_later_version_draws_it_again():
    # printf 'pilot\\0000\\000d' | sha256sum, and so on, sorted
    assert pilot_questions(["a", "b", "c", "d", "e", "f"], 0.5) == ("d", "b", "e")


def test_every_question_is_as_likely_as_any_other():
    counts = dict.fromkeys(IDS[:20], 0)
    for seed in range(600):
        for one in pilot_questions(IDS[:20], 0.25, seed=seed):
            counts[one] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_all_proofs_of_the_pilots_questions_are_in_it():
    proofs = {"p1": "a", "p3": "b", "p2": "a", "p4": "c"}
    assert pilot_proofs(proofs, ["a", "c", "no proofs"]) == ("p1", "p2", "p4")


def test_each_round_contains_the_one_before():
    sizes = [one.checked for one in Rounds(least_applies="last").of(1440)]
    first, second, third = cumulative_samples(IDS, sizes, seed=1)
    assert [len(first), len(second), len(third)] == [8, 15, 36]
    assert second[:8] == first
    assert third[:15] == second
    assert cumulative_samples(reversed(IDS), sizes, seed=1) == (first, second, third)
    assert first != pilot_questions(IDS, 0.04, seed=1)  # an order of its own


def test_a_proof_more_moves_at_most_one_out_of_a_round():
    (before,), (after,) = (cumulative_samples(ids, [30]) for ids in (IDS, [*IDS, "one more"]))
    assert len(set(before) - set(after)) <= 1


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(DataError, match="1 id given more than once, 'a'"):
        pilot_questions(["a", "b", "a"])
    with pytest.raises(ConfigError, match=r"pilot is 5; give a number above 0, at most 1"):
        pilot_questions(IDS, 5)
    with pytest.raises(DataError, match="the last round reads 30 proofs and the pilot has 3"):
        cumulative_samples(IDS[:3], [1, 30])
    with pytest.raises(DataError, match="cannot fall"):
        cumulative_samples(IDS, [10, 5])
    with pytest.raises(DataError, match="7 is not an id"):
        pilot_questions(["a", 7])  # type: ignore[list-item]
    assert len(pilot_questions(["broken \ud800", "b"], 0.9)) == 2
    with pytest.raises(DataError, match="seed is 'x'"):
        pilot_questions(IDS, seed="x")  # type: ignore[arg-type]
