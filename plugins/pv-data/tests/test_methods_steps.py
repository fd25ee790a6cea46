"""A proof is cut into steps that join to what it was, and never where its LaTeX holds together."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from functools import cache

import places
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pv_data.methods.base import Unfit
from pv_data.methods.masking import Masked, key_steps, masked
from pv_data.methods.steps import protected, split_steps

DATA = places.SHARED / "data"
A = "We first show that the number n has at least two divisors."
B = "Suppose that it has not, and take the least counterexample."


@cache
def real_proofs() -> list[str]:
    files = ["olympiadbench/tp_nongeometry", "olympiadbench/oe_nongeometry", "opc/opc_dev"]
    if not (DATA / "opc").is_dir():
        pytest.skip("needs the folder of real inputs, ../shared/data beside the checkout")
    rows = [json.loads(line) for name in files for line in (DATA / f"{name}.jsonl").open(encoding="utf-8")]
    proofs = [proof for row in rows for proof in row.get("solutions", [])]
    return proofs + [row[key] for row in rows for key in ("proof", "reference_solution") if row.get(key)]


def cuts(text: str) -> list[int]:
    at, found = 0, []
    for step in split_steps(text)[:-1]:
        at += len(step)
        found.append(at)
    return found


def test_sentences_are_steps_and_keep_the_white_space_behind_them():
    assert split_steps(f"{A} {B}\n\n{A}") == [f"{A} ", f"{B}\n\n", A]


def test_a_short_sentence_joins_the_next_and_a_short_end_the_last():
    assert split_steps(f"Proof. {A} {B} Done.") == [f"Proof. {A} ", f"{B} Done."]


@pytest.mark.parametrize(
    "held",
    [
        "we have $x = 1. Then y = 2$ for all of them",
        "we have \\[ x = 1.\n\n Then y = 2 \\] for all",
        "we have\n$$\n\nx = 1.\n\nThen\n\n$$\nfor all of them",
        "we have \\(a. B\\) for all of them",
        "\\begin{align} x. Y \\\\ \\begin{align} z. W \\end{align} A. B \\end{align}",
        "\\begin{itemize}\n\\item First. Then more.\n\n\\item Second. End.\n\\end{itemize}",
        f"\\textbf{{{A} {B}}} which holds for all of them",
        "- the first item. It is long.\n\n- the second item. It is longer.\n",
        "1. First we count. There are ten.\n2. Then we subtract. There are nine.\n",
        "```\nx. Y. Z\n\nW. V\n```",
    ],
)
def test_nothing_is_cut_within_what_holds_together(held: str):
    text = f"{A}\n\n{held}\n\n{B} {A}"
    start = text.index(held)
    assert "".join(split_steps(text)) == text
    assert [cut for cut in cuts(text) if start < cut < start + len(held.rstrip())] == []
    assert len(split_steps(text)) >= 3


@pytest.mark.parametrize(
    "short", ["i.e. A", "e.g. $x$", "by Eq. (3)", "at the point P. This", "cf. Theorem 2"]
)
def test_an_abbreviation_ends_no_step(short: str):
    assert len(split_steps(f"{A[:-1]}, {short} and all that follows from it in this way.")) == 1


def test_a_full_stop_at_the_end_of_a_formula_ends_a_step():
    first = "The sum of all of these numbers is therefore\n$$\n1 + 2 + 3 + 4 + 5 = 15 .\n$$\n\n"
    assert split_steps(first + B) == [first, B]
    assert len(split_steps(first.replace(" .", "") + "where the numbers are those of the list above.")) == 1


def test_a_dollar_of_money_hides_nothing():
    assert split_steps(f"{A[:-1]} and it costs $5.\n\n{B}\n\n{A}") == [
        f"{A[:-1]} and it costs $5.\n\n",
        f"{B}\n\n",
        A,
    ]


def test_all_real_proofs_join_again_and_are_cut_outside_of_formulas():
    for proof in real_proofs():
        assert "".join(split_steps(proof)) == proof
        spans = protected(proof)
        for cut in cuts(proof):
            span = bisect_right(spans, (cut, -1)) - 1  # the last one that starts before the cut
            assert span < 0 or cut >= spans[span][1]


PIECES = [
    "$",
    "$$",
    "\\[",
    "\\]",
    "\\(",
    "\\)",
    "\\begin{a}",
    "\\end{a}",
    "\\begin{b}",
    "\\end{b}",
    "{",
    "}",
    "\\",
    "\\\\",
]
PIECES += [
    "\n",
    "\n\n",
    "\r\n",
    "\u2028",
    ". ",
    ".",
    "A",
    "x",
    " ",
    "- ",
    "1. ",
    "```",
    "。",
    "é",
    "\x00",
    "Then we go on. ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
@settings(max_examples=400, deadline=None)
def test_broken_latex_joins_again_too(text: str):
    assert "".join(split_steps(text)) == text
    assert all(step for step in split_steps(text))


@given(st.data(), st.integers(0, 2**63), st.floats(0.01, 0.7))
@settings(max_examples=150, deadline=None)
def test_masking_and_filling_in_the_original_gives_the_original(data: st.DataObject, seed: int, share: float):
    proof = data.draw(st.sampled_from(real_proofs()))
    try:
        hidden = masked(proof, share=share, seed=seed)
    except Unfit:
        hidden = None
    assert (hidden is None) == (len(split_steps(proof)) < 4)
    if hidden is None:
        return
    assert hidden.filled(hidden.originals) == proof
    assert 0 not in hidden.hidden
    assert 1 <= len(hidden.hidden) < len(hidden.steps)
    answer = "\n".join(f"{hidden.gap(n)}\n{text}" for n, text in enumerate(hidden.originals, start=1))
    assert all(hidden.shown.count(hidden.gap(n + 1)) == 1 for n in range(len(hidden.hidden)))
    if "<think>" not in answer:
        assert hidden.filled(hidden.read(answer)) == proof


def test_the_steps_that_are_hidden_depend_on_the_seed_alone():
    steps = [f"Step {n} of the proof, therefore." for n in range(20)]
    draws = [key_steps(steps, share=0.3, seed=seed) for seed in range(40)]
    assert draws == [key_steps(steps, share=0.3, seed=seed) for seed in range(40)]
    assert {len(one) for one in draws} == {6}
    assert len(set(draws)) > 30


def test_steps_that_infer_are_hidden_three_times_as_often():
    steps = ["Start.", *["Therefore it holds." if n % 2 else "We look at it." for n in range(20)]]
    picks = [key_steps(steps, share=1 / 21, seed=seed)[0] for seed in range(4000)]
    inferring = sum("Therefore" in steps[pick] for pick in picks) / len(picks)
    assert abs(inferring - 0.75) < 0.03  # weights 3 and 1, ten of each; the standard error is 0.007


def example() -> Masked:
    steps = (
        A + " ",
        "First gap is here, of forty signs and more. ",
        B + "\n\n",
        "Second gap is here.\n",
        "End. " * 9,
    )
    return Masked(steps=steps, hidden=(1, 3), mark="0123456789ab")


def test_gaps_are_filled_in_place():
    hidden = example()
    text = f"<think>hm</think>{hidden.gap(1)}\nNew one.\n{hidden.gap(2)}: New two."
    assert hidden.filled(hidden.read(text)) == f"{A} New one. {B}\n\nNew two.\n" + "End. " * 9


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("New one. New two.", "gap not filled"),
        ("{1}\nNew one.", "gap not filled"),
        ("{1}\n\n{2}\nNew two.", "gap not filled"),
        ("{2}\nNew two.\n{1}\nNew one.", "gaps in disorder"),
        ("{1}\nNew one.\n{2}\nNew two.\n{2}\nAgain.", "gaps in disorder"),
        ("{1}\nNew one.\n{2}\nas in [[gap 1 of it]]", "mask left"),
        ("{1}\nNew one.\n{2}\nI'm sorry, I cannot do that.", "refusal"),
        ("I'm sorry, but I can't help.", "refusal"),
        ("{1}\n" + B + " And so on.\n{2}\nNew two.", "echo"),
        ("word " * 100 + "{1}\nNew one.\n{2}\nNew two.", "text before the gaps"),
        ("<think>not yet", "unfinished thoughts"),
    ],
)
def test_an_answer_that_leaves_a_gap_is_set_aside(answer: str, reason: str):
    hidden = example()
    with pytest.raises(Unfit) as caught:
        hidden.read(answer.replace("{1}", hidden.gap(1)).replace("{2}", hidden.gap(2)))
    assert caught.value.reason == reason


UNITS = [
    "$",
    "\\[",
    "\\begin{a}",
    "{",
    "```",
    ". A",
    "- x\n",
    "\n\n",
    "$x\n\n",
    "a. ",
    "\\begin{a}x\\end{a}",
    "{{a}}",
]


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_texts_are_split_in_no_time(unit: str):
    start = time.monotonic()
    text = unit * (200_000 // len(unit))
    assert "".join(split_steps(text)) == text
    assert time.monotonic() - start < 5


def test_a_step_that_says_the_one_before_it_again_may_be_filled_in():
    said = "The middle number is a multiple of three, and so it is odd."
    hidden = Masked(
        steps=("First. ", said + " ", "Again: " + said + " ", "Done."), hidden=(2,), mark="a1b2c3"
    )
    assert hidden.read(f"{hidden.gap(1)}\nAgain: {said}") == ["Again: " + said]
    other = Masked(steps=("First. ", said + " ", "It is even. ", "Done."), hidden=(2,), mark="a1b2c3")
    with pytest.raises(Unfit, match="echo"):
        other.read(f"{other.gap(1)}\nAgain: {said}")


@pytest.mark.parametrize("line", ["–" * 40 + "\n", "* * *\n", "\\[\\]\n"])
def test_a_step_without_a_word_is_not_hidden(line):
    steps = ["Let n be even. ", line, "So n is 2k. ", line, "Then n + 1 is odd. "]
    for seed in range(50):
        assert set(key_steps(steps, share=0.7, seed=seed)) == {2, 4}
