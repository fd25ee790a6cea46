"""What marks decide, and what they prove."""

from __future__ import annotations

import math

import pytest

from pv_data.audit import Mark, Rounds, clustered_lower_bound, decide, lower_bound, slice_states, weigh
from pv_rl.errors import DataError


def _marks(
    agree: int, differ: int, *, slice: str = "s", round: int = 1, start: int = 0, each: int = 1
) -> list[Mark]:
    """Labels alternate; `each` proofs a question."""
    return [
        Mark(
            slice=slice,
            question=f"{slice} q{place // each}",
            proof=f"{slice} {place}",
            label=place % 2 == 0,
            human=(place % 2 == 0) == (place - start < agree),
            round=round,
        )
        for place in range(start, start + agree + differ)
    ]


def test_27_of_30_is_accepted_and_26_discarded():
    assert decide("s", _marks(27, 3), 600).verdict == "accept"
    assert decide("s", _marks(26, 4), 600).verdict == "discard"


def test_a_slice_says_what_is_missing():
    found = decide("s", _marks(10, 0), 600)
    assert (found.verdict, found.round, found.agree, found.checked, found.due) == ("open", 1, 10, 10, 30)
    assert found.missing == 20
    assert decide("s", _marks(27, 3), 600).missing == 0
    assert decide("s", [], 600).missing == 30


def test_a_slice_goes_through_its_rounds():
    rounds = Rounds(least_applies="last")  # of 600: 3, 6 and 30
    marks = _marks(3, 0)
    assert decide("s", marks, 600, rounds).round == 2
    marks += _marks(2, 1, round=2, start=3)
    found = decide("s", marks, 600, rounds)
    assert (found.round, found.agree, found.checked, found.missing) == (3, 5, 6, 24)  # 5 of 6 passes 80%
    marks += _marks(22, 2, round=3, start=6)
    found = decide("s", marks, 600, rounds)
    assert (found.verdict, found.round, found.agree, found.checked, found.gate) == ("accept", 3, 27, 30, 0.9)


def test_later_marks_do_not_mend_a_failed_round():
    marks = _marks(2, 1) + _marks(27, 0, round=3, start=3)
    found = decide("s", marks, 600, Rounds(least_applies="last"))
    assert (found.verdict, found.round, found.agree, found.checked) == (
        "discard",
        1,
        2,
        3,
    )  # 2 of 3 is below 75%
    assert decide("s", marks, 600).verdict == "open"  # 30 in every round: the first has 3


def test_marks_beyond_what_is_due_count():
    assert decide("s", _marks(28, 4), 600).verdict == "discard"  # 28 of 32 is 87.5%
    assert decide("s", _marks(36, 4), 600).verdict == "accept"


def test_a_slice_of_fewer_than_thirty_is_read_whole():
    assert decide("s", _marks(9, 1), 10).verdict == "accept"
    assert decide("s", _marks(8, 1), 10).missing == 1


def test_every_slice_has_a_state_also_without_marks():
    found = slice_states(_marks(27, 3, slice="a") + _marks(1, 0, slice="b"), {"a": 600, "b": 600, "c": 12})
    assert [(name, one.verdict, one.missing) for name, one in found.items()] == [
        ("a", "accept", 0),
        ("b", "open", 29),
        ("c", "open", 12),
    ]


def test_marks_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="is marked twice"):
        decide("s", [*_marks(1, 0), *_marks(1, 0)], 600)
    with pytest.raises(DataError, match="11 marks and 10 proofs"):
        decide("s", _marks(11, 0), 10)
    with pytest.raises(DataError, match="size of slice 's' is None"):
        decide("s", [], None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="slice 's', whose size is not given"):
        slice_states(_marks(1, 0), {"a": 5})
    good = {"slice": "s", "question": "q", "proof": "p", "label": True, "human": True}
    for wrong, says in [
        ({"label": None}, "the label of proof 'p' is None"),
        ({"human": "True"}, "the human of proof 'p' is 'True'"),
        ({"human": 1}, "the human of proof 'p' is 1"),
        ({"slice": " "}, "slice is ' '"),
        ({"question": 7}, "question is 7"),
        ({"round": 0}, "round of proof 'p' is 0"),
    ]:
        with pytest.raises(DataError, match=says):
            Mark(**{**good, **wrong})


def test_evidence_by_slice_pooled_and_by_class():
    marks = _marks(27, 3, slice="a", each=2) + _marks(14, 1, slice="b")
    found = weigh(marks, 0.81)
    a, b = found.slices["a"], found.slices["b"]
    assert (a.agree, a.checked, a.questions, a.ratio) == (27, 30, 15, 0.9)
    assert a.lower == lower_bound(27, 30, 0.81)
    assert a.lower_together == pytest.approx(lower_bound(27, 30, 0.9))  # two slices: 0.9 x 0.9
    assert a.clustered == clustered_lower_bound(
        [(one.question, one.agrees) for one in marks if one.slice == "a"], 0.81
    )
    assert (b.agree, b.checked) == (14, 15)
    assert (found.pooled.agree, found.pooled.checked, found.pooled.lower_together) == (41, 45, None)
    # In a the last three differ (27 to 29: wrong, correct, wrong); in b the last one (14: correct).
    correct, wrong = found.classes["correct"], found.classes["wrong"]
    assert (correct.agree, correct.checked) == (14 + 7, 15 + 8)
    assert (wrong.agree, wrong.checked) == (13 + 7, 15 + 7)
    assert wrong.lower == lower_bound(20, 22, 0.81)


def test_the_pool_can_be_the_accepted_slices_and_the_bounds_together_still_count_all():
    marks = _marks(27, 3, slice="a") + _marks(14, 1, slice="b")
    found = weigh(marks, pool={"b"})
    assert (found.pooled.agree, found.pooled.checked) == (14, 15)
    assert sum(group.checked for group in found.classes.values()) == 15
    assert found.slices["b"].lower_together == weigh(marks).slices["b"].lower_together


def test_sizes_make_the_bounds_finite_and_show_slices_without_marks():
    found = weigh(_marks(9, 1), sizes={"s": 10, "empty": 7})
    assert found.slices["s"].lower == 0.9
    empty = found.slices["empty"]
    assert math.isnan(empty.ratio)
    assert (empty.checked, empty.lower, empty.clustered) == (0, 0.0, None)


def test_no_marks_prove_nothing():
    found = weigh([])
    assert found.slices == {}
    assert (found.pooled.checked, found.pooled.lower) == (0, 0.0)


def test_unknown_slices_are_refused():
    with pytest.raises(DataError, match="slice 'x' of the pool has no marks"):
        weigh(_marks(1, 0), pool={"x"})
    with pytest.raises(DataError, match="the size of slice 's' is not given"):
        weigh(_marks(1, 0), sizes={"a": 3})
