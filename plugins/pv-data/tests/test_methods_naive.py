"""Naive negatives are wrong by construction, of many kinds, and the same each time."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import places
import pytest

from pv_data.methods.base import Given, Unfit
from pv_data.methods.naive_negative import ALL, FORMS, NaiveNegative
from pv_data.methods.truncation import truncated
from pv_data.records import Problem, Proof
from pv_rl.errors import ConfigError

DATA = places.SHARED / "data"
PROBLEM = Problem(
    source="S",
    native_id="1",
    text="Show that for each natural number n the number n(n+1) is even, whatever n may be.",
)
STEP = (
    "The number at place {} is the sum of the two numbers before it, and so it is larger than both of them. "
)
LONG = "".join(STEP.format(number) for number in range(12))
PROOF = Proof(
    problem_id=PROBLEM.id, source="S", method="ground_truth", text=LONG + "This completes the proof."
)


def given(seed: int, proof: Proof | None = PROOF, problem: Problem = PROBLEM) -> Given:
    return Given(problem=problem, proof=proof, sample=0, seed=seed)


def cut(text: str, answer: str = "", seed: int = 0) -> str:
    return truncated(text, answer, random.Random(seed))


def test_the_seed_alone_decides_and_all_forms_come():
    made = [NaiveNegative().prepare(given(seed)) for seed in range(400)]
    assert made == [NaiveNegative().prepare(given(seed)) for seed in range(400)]
    assert all(one.known is False for one in made)
    forms = Counter(one.known_by.removeprefix("construction: ") for one in made)
    assert set(forms) == set(ALL)
    assert min(forms.values()) >= 20  # 40 expected of each of ten
    assert len({one.text for one in made}) > 300


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_many_texts_and_none_is_blank(form: str):
    texts = {NaiveNegative(forms=[form]).prepare(given(seed, proof=None)).text for seed in range(200)}
    assert len(texts) >= (4 if form == "restated" else 10)
    assert all(text.strip() == text and text for text in texts)


def test_only_cutting_needs_a_proof():
    assert NaiveNegative().needs_proof
    assert not NaiveNegative(forms=list(FORMS)).needs_proof
    assert NaiveNegative().template == ""


def test_a_form_that_does_not_fit_gives_way_and_the_only_one_is_unfit():
    both = [
        NaiveNegative(forms=["truncated", "refusal"]).prepare(given(seed, proof=None)) for seed in range(20)
    ]
    assert {one.known_by for one in both} == {"construction: refusal"}
    with pytest.raises(Unfit, match="no proof"):
        NaiveNegative(forms=["truncated"]).prepare(given(0, proof=None))
    with pytest.raises(Unfit, match="empty problem"):
        NaiveNegative().prepare(given(0, problem=replace(PROBLEM, text="  ")))
    with pytest.raises(ConfigError, match="truncated"):
        NaiveNegative(forms=["nonsense"])


def test_a_problem_that_brings_an_argument_is_not_repeated():
    hint = replace(
        PROBLEM, text=PROBLEM.text + " Hint: one of n and n + 1 is even, because they are consecutive."
    )
    for form in ("restated", "scrambled"):
        with pytest.raises(Unfit, match="argument"):
            NaiveNegative(forms=[form]).prepare(given(0, problem=hint))


EUCLID = "Show that there are infinitely many primes among all the natural numbers that there are."
EUCLID_IN_GERMAN = "Beweise, dass es unendlich viele Primzahlen unter den natürlichen Zahlen gibt."


@pytest.mark.parametrize("text", [EUCLID, EUCLID_IN_GERMAN])
def test_other_mathematics_is_not_that_of_the_problem(text: str):
    problem = replace(PROBLEM, text=text)
    texts = [
        NaiveNegative(forms=["off_topic"]).prepare(given(seed, problem=problem)).text for seed in range(300)
    ]
    assert not any("infinitely many primes" in one for one in texts)


def test_a_cut_proof_is_a_beginning_of_at_most_half_and_stops_within_a_sentence():
    for seed in range(100):
        kept = cut(PROOF.text, seed=seed)
        assert PROOF.text.startswith(kept)
        assert len(kept) <= len(LONG) / 2
        assert kept[-1] not in ".!?"
        assert PROOF.text[len(kept)] not in ".!?"


@pytest.mark.parametrize(
    "end",
    [
        "This completes the proof. ",
        "Hence the sum is larger, as desired. ",
        "So it is larger. $\\blacksquare$ ",
        "We are done. ",
        "\n\nRemark. ",
        "\n\nSecond solution. ",
        "\n\nAlternatively, one may argue as follows. ",
        "\n\nGeneralization. ",
    ],
)
def test_what_stands_behind_the_end_of_the_proof_is_not_all_that_is_lost(end: str):
    early = LONG[: len(LONG) // 2] + end + LONG * 3
    for seed in range(50):
        assert len(cut(early, seed=seed)) <= len(LONG) / 4
    with pytest.raises(Unfit, match="too short to cut"):
        cut(STEP.format(1) + STEP.format(2) + end + LONG * 3)


def test_a_cut_that_keeps_the_final_answer_is_not_made():
    with pytest.raises(Unfit, match="answer kept"):
        cut("The answer is $x = 17$, as we shall see in what follows here. " + LONG, answer="17")
    assert cut(LONG, answer="171717")


def test_a_proof_in_a_language_whose_endings_are_unknown_is_not_cut():
    with pytest.raises(Unfit, match="language"):
        cut("Die Zahl an der Stelle ist die Summe der beiden Zahlen und sie ist das Doppelte davon. " * 12)


def test_cut_real_proofs_lack_at_least_half_of_what_stands_before_their_conclusion():
    if not (DATA / "olympiadbench").is_dir():
        pytest.skip("needs the folder of real inputs, ../shared/data beside the checkout")
    lines = (DATA / "olympiadbench" / "tp_nongeometry.jsonl").read_text(encoding="utf-8").splitlines()
    proofs = [proof for line in lines for proof in json.loads(line)["solutions"]]
    made = 0
    for seed, proof in enumerate(proofs):
        try:
            kept = cut(proof, seed=seed)
        except Unfit:
            continue
        made += 1
        assert proof.strip().startswith(kept)
        assert len(kept) <= len(proof) / 2
        assert not any(end in kept for end in ("as desired", "completes the proof", "\\blacksquare", "Q.E.D"))
    assert (made, len(proofs)) == (MADE, 460)


MADE = 312
