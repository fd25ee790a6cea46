"""A problem is in train or in test, with all that belong to it, and stays there when others come."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pv_data.records import Problem
from pv_data.splits import SplitRules, split_problems
from pv_rl.errors import ConfigError, DataError

ALL_TRAIN = SplitRules(test=0)


def problem(number: int, **changes: str) -> Problem:
    return replace(
        Problem(source="S", native_id=str(number), text=f"Show that {number} is a number."), **changes
    )


MANY = [problem(number) for number in range(2000)]


def test_about_the_share_that_was_asked_for_is_drawn():
    splits = split_problems(MANY, SplitRules(test=0.25))
    # 500 expected; four standard deviations are 4 * sqrt(2000 * 0.25 * 0.75) = 77
    assert 423 <= splits.counts()["test", "drawn"] <= 577
    assert not splits.conflicts


def test_neither_order_nor_further_problems_move_anybody():
    before = split_problems(MANY[:500], SplitRules(test=0.25))
    shuffled = random.Random(1).sample(MANY, len(MANY))
    after = split_problems(shuffled, SplitRules(test=0.25))
    assert all(after.of(one) == before.of(one) for one in before.placed)


def test_a_larger_share_only_adds_to_the_test_set():
    small, large = (split_problems(MANY, SplitRules(test=share)) for share in (0.1, 0.3))
    assert all(large.of(one) == "test" for one in small.placed if small.of(one) == "test")


def test_another_seed_draws_others():
    first, second = (split_problems(MANY, SplitRules(test=0.5, seed=seed)) for seed in (0, 1))
    same = sum(first.of(one.id) == second.of(one.id) for one in MANY)
    assert 900 <= same <= 1100  # 1000 expected, four standard deviations are 89


def test_the_same_problems_are_drawn_on_every_machine():
    splits = split_problems(MANY[:20], SplitRules(test=0.2))
    assert [one.native_id for one in MANY[:20] if splits.of(one.id) == "test"] == [
        *("1", "4", "8", "13", "15")  # of another run, on another machine
    ]


def test_a_cluster_stays_together():
    clusters = {one.id: f"cluster {number // 4}" for number, one in enumerate(MANY)}
    splits = split_problems(MANY, SplitRules(test=0.5), clusters=clusters)
    for first in range(0, 2000, 4):
        assert len({splits.of(one.id) for one in MANY[first : first + 4]}) == 1
    assert 200 <= sum(splits.of(one.id) == "test" for one in MANY[::4]) <= 300  # 250, deviation 11


def test_the_names_of_clusters_decide_nothing():
    one, other = ({one.id: f"{name} {n // 4}" for n, one in enumerate(MANY)} for name in "ab")
    rules = SplitRules(test=0.5)
    assert split_problems(MANY, rules, clusters=one) == split_problems(MANY, rules, clusters=other)


def test_the_same_text_of_two_sources_goes_the_same_way_without_any_clusters():
    copies = [replace(one, source="T", text=one.text.replace(" ", "\n  ").upper()) for one in MANY]
    splits = split_problems([*MANY, *copies], SplitRules(test=0.5))
    assert all(splits.of(one.id) == splits.of(copy.id) for one, copy in zip(MANY, copies, strict=True))


def test_what_hangs_together_through_a_third_goes_the_same_way():
    first, second = problem(1), problem(2)
    copy = replace(second, source="T")  # by its text with the second, by its cluster with the first
    splits = split_problems([first, second, copy], ALL_TRAIN, clusters={first.id: "c", copy.id: "c"})
    assert {splits.placed[one.id].cluster for one in (first, second, copy)} == {
        min(first.id, second.id, copy.id)
    }


def test_a_problem_goes_where_it_is_wanted():
    rows = [problem(1, split="test"), problem(2, split="train"), problem(3, source="Bench"), problem(4)]
    splits = split_problems(rows, SplitRules(test=0, test_sources=("Bench",)))
    assert [splits.of(one.id) for one in rows] == ["test", "train", "test", "train"]
    assert [splits.placed[one.id].why for one in rows] == ["asked for", "asked for", "source", "drawn"]


def test_its_own_wish_counts_more_than_its_source():
    row = problem(1, source="Bench", split="train")
    assert split_problems([row], SplitRules(test_sources=("Bench",))).of(row.id) == "train"


def test_test_wins_in_a_cluster_and_the_conflict_is_told():
    rows = [problem(1, split="train"), problem(2, split="test"), problem(3)]
    splits = split_problems(rows, ALL_TRAIN, clusters={one.id: "c" for one in rows})
    assert {splits.of(one.id) for one in rows} == {"test"}
    assert splits.conflicts == (min(one.id for one in rows),)
    assert splits.placed[rows[2].id].why == "with a problem that it belongs to"


def test_audited_questions_are_held_out_and_so_are_their_duplicates():
    rows = [problem(1), problem(2), problem(3)]
    clusters = {rows[0].id: "c", rows[1].id: "c"}
    splits = split_problems(rows, ALL_TRAIN, clusters=clusters, audited={rows[0].id})
    assert [splits.of(one.id) for one in rows] == ["test", "test", "train"]
    assert splits.placed[rows[0].id].why == "audited"
    kept = split_problems(rows, SplitRules(test=0, hold_out_audited=False), audited={rows[0].id})
    assert {kept.of(one.id) for one in rows} == {"train"}


def test_an_audited_question_that_wants_to_be_trained_on_is_a_conflict():
    row = problem(1, split="train")
    splits = split_problems([row], ALL_TRAIN, audited={row.id})
    assert (splits.of(row.id), splits.conflicts) == ("test", (row.id,))


def test_a_split_that_is_none_and_a_share_that_is_none_are_refused():
    with pytest.raises(DataError, match="has the split 'dev'; it is train, test, or empty"):
        split_problems([problem(1, split="dev")], ALL_TRAIN)
    with pytest.raises(ConfigError, match=r"split\.test=1\.0; it is a part of the questions"):
        SplitRules(test=1.0)
    with pytest.raises(ConfigError, match=r"split\.test=nan"):
        SplitRules(test=float("nan"))
    with pytest.raises(DataError, match="has no split; split all problems of the run together"):
        split_problems([], ALL_TRAIN).of("abc")
