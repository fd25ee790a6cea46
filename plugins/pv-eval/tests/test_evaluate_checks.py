"""Sets that are wrong: refused, or set aside and counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluate_cases import made, pair, votes

from pv_eval import Pair, Vote, check, evaluate, read_vote, score_verdict
from pv_rl.errors import DataError


def said(checked) -> str:
    return "; ".join(map(str, checked.problems))


def test_a_good_set_has_no_problems_and_keeps_everything():
    pairs, given = made(("a", True, "q", "TF"), ("b", False, "r", "FF"))
    checked = check(pairs, given[::-1])
    assert checked.problems == ()
    assert checked.pairs == tuple(pairs)
    assert checked.votes == tuple(given)


def test_pairs_without_label_or_votes_and_votes_without_pair_are_set_aside_with_counts():
    pairs, given = made(("a", True, "q", "TF"), ("b", False, "r", "FF"))
    pairs += [pair("c", None), pair("d", True)]
    checked = check(pairs, [*given, *votes("c", "TT"), *votes("x", "TTT", "z")])
    assert [one.pair_id for one in checked.pairs] == ["a", "b"]
    assert {vote.pair_id for vote in checked.votes} == {"a", "b"}
    assert "3 votes without a pair, left out ('x')" in said(checked)
    assert "1 pair without a label, left out with their votes ('c')" in said(checked)
    assert "1 pair without votes, left out ('d')" in said(checked)
    assert evaluate(checked).pairs == 2


def test_what_would_make_a_number_wrong_is_refused():
    pairs, given = made(("a", True, "q", "TF"), ("b", False, "r", "FF"))
    with pytest.raises(DataError, match=r"1 id of more than one pair \('a'\)"):
        check([*pairs, pairs[0]], given).refuse()
    with pytest.raises(DataError, match="1 vote with the pair and the sample number of another"):
        check(pairs, [*given, given[0]]).refuse()
    with pytest.raises(DataError, match="1 vote with another question"):
        check(pairs, [replace(given[0], question_id="r"), *given[1:]]).refuse()
    with pytest.raises(DataError, match="2 pairs, all of weight 0"):
        check([replace(one, weight=0.0) for one in pairs], given).refuse()
    with pytest.raises(DataError, match=r"2 pairs without a label.*no pair is left"):
        evaluate(check([replace(one, label=None) for one in pairs], given))
    with pytest.raises(DataError, match="no pair is left"):
        check([], []).refuse()


def test_one_proof_with_both_labels_is_refused_and_with_one_label_flagged():
    pairs, given = made(("a", True, "q", "TF"), ("b", False, "q", "FF"))
    texts = [replace(one, proof=" By  induction.") for one in pairs]
    with pytest.raises(DataError, match=r"2 pairs with the same proof .* the other label"):
        check(texts, given).refuse()
    same = check([replace(one, label=True) for one in texts], given).refuse()
    assert "1 pair with the proof" in said(same)


def test_odd_things_are_flagged():
    pairs, given = made(("a", True, "q", "TF"), ("b", True, "q", "FFF"), ("c", True, "q", "NN"))
    pairs = [replace(one, question=text) for one, text in zip(pairs, ("x", "x", "y"), strict=True)]
    text = said(check(pairs, given).refuse())
    assert "1 pair with another number of samples than 2" in text
    assert "1 pair without a verdict in any sample" in text
    assert "1 question with several texts ('q')" in text
    assert "3 pairs, all right proofs" in text
    assert "3 pairs of one question only" in text


def test_many_names_are_cut():
    pairs, given = made(*((f"p{n}", n > 2, f"q{n}", "T") for n in range(9)))
    text = said(check(pairs[:4], given))
    assert "5 votes without a pair, left out ('p4', 'p5', 'p6', ...)" in text


def test_values_of_wrong_types_are_refused():
    """No conversion: what counts as right is not decided here."""
    pair_of = {"pair_id": "a", "question_id": "q", "label": True}
    vote_of = {"pair_id": "a", "question_id": "q", "sample": 0, "verdict": True}
    for kind, good, wrong in (
        (Pair, pair_of, {"pair_id": " ", "question_id": 3, "proof": None}),
        (Pair, pair_of, {"label": 1, "weight": -1.0}),
        (Pair, pair_of, {"label": np.True_, "weight": float("nan")}),
        (Vote, vote_of, {"verdict": "True", "sample": -1, "length": -1}),
        (Vote, vote_of, {"sample": True, "length": float("inf"), "logit": float("nan"), "trace": 5}),
    ):
        for field, value in wrong.items():
            with pytest.raises(DataError, match=f"has {field}="):
                kind(**{**good, field: value})


def test_the_scorer_is_a_plain_function():
    assert score_verdict("No gap.\n### True", True) == {"acc": 1.0, "accepted": 1.0, "missing": 0.0}
    assert score_verdict("No gap.\n### True", False) == {"acc": 0.0, "accepted": 1.0, "missing": 0.0}
    assert score_verdict("No gap.", False) == {"acc": 0.0, "accepted": 0.0, "missing": 1.0}
    with pytest.raises(DataError, match="takes a text and True or False"):
        score_verdict("### True", 1)  # pyright: ignore[reportArgumentType]


def test_a_trace_becomes_a_vote():
    vote = read_vote(pair_id="a", question_id="q", sample=3, trace="Wrong.\n### False")
    assert (vote.verdict, vote.length, vote.trace) == (False, 16, "Wrong.\n### False")
    bare = read_vote(pair_id="a", question_id="q", sample=3, trace="Wrong.", length=2, keep_trace=False)
    assert (bare.verdict, bare.length, bare.trace) == (None, 2, None)
