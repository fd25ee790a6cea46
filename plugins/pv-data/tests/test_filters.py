"""Filters: geometry by subject or words, language without LaTeX, length."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from sources_cases import needs_data, problems, real

from pv_data.filters import geometry, language, language_of, length, words_only
from pv_data.records import Problem
from pv_rl.errors import ConfigError

TRIANGLE = "Let $ABC$ be a triangle with circumcircle $\\omega$. Prove that $\\angle ABC$ is acute."


def problem(text: str, **fields: str) -> Problem:
    return Problem(source="S", native_id="1", text=text, **fields)


@pytest.mark.parametrize(
    ("subject", "text", "is_geometry"),
    [
        ("", TRIANGLE, True),
        ("Number Theory", TRIANGLE, False),
        ("Plane Geometry", "Find $n$.", True),
        ("Combinatorial geometry", "Points are red.", False),
        ("", "Numbers are written in a triangle of 10 rows.", False),
        ("", "2n people sit in a circle. How many ways are there?", False),
        ("", "In triangle \\(ABC\\), the altitude \\(CH\\) is drawn.", True),
        ("", "The triangle the boy drew and the segment to it: find n.", False),
    ],
)
def test_geometry_is_what_the_subject_says_else_what_two_words_say(
    subject: str, text: str, is_geometry: bool
):
    found = geometry(problem(text, subject=subject))
    assert (found is not None) is is_geometry
    assert found is None or found[0] == "geometry"


@needs_data
def test_the_words_find_13_of_14_geometry_problems_and_take_7_of_581_others_for_geometry():
    known = [one for name in ("proofbench", "olympiadbench") for one in problems(real(name))]
    told = [(one.subject == "Geometry", geometry(replace(one, subject="")) is not None) for one in known]
    assert (told.count((True, True)), told.count((True, False))) == (13, 1)
    assert (told.count((False, True)), told.count((False, False))) == (7, 574)


ENGLISH = "Let $n$ be a positive integer. Prove that there are infinitely many primes of the form $4n + 3$."
GERMAN = "Sei $n$ eine natürliche Zahl. Man zeige, dass es unendlich viele Primzahlen der Form $4n + 3$ gibt."
CHINESE = "设 $n$ 为正整数，证明存在无穷多个形如 $4n+3$ 的素数。"


@pytest.mark.parametrize(("text", "code"), [(ENGLISH, "en"), (GERMAN, "de"), (CHINESE, "zh")])
def test_the_language_is_that_of_the_words_and_not_of_the_formulas(text: str, code: str):
    assert language_of(text) == code
    assert (
        language_of(r"\begin{align*} " + text + r" \frac{a}{b} \end{align*}" + "$$" + "x" * 500 + "$$")
        == code
    )
    assert (language(problem(text), ["en"]) is None) is (code == "en")
    assert language(problem(text), []) is None


def test_a_short_text_has_no_language_and_passes():
    assert language_of("$x^2 + y^2 = z^2$, find $x$.") == ""
    assert language(problem("Zeige $x > 0$."), ["en"]) is None


def test_what_the_source_says_of_the_language_counts():
    assert language(problem(ENGLISH, language="zh"), ["en"]) == (
        "language",
        "zh as its source says; kept are en",
    )
    assert language(problem(CHINESE, language="en-US"), ["en"]) is None
    assert language(problem(GERMAN, language="unknown"), ["en"]) is not None


def test_formulas_and_commands_are_no_words():
    assert words_only(r"\textbf{Find} all $n$ with \(a\) and \[b\] \dots, $$c$$ or \$5.") == (
        "Find all with and , or 5."
    )


@needs_data
def test_no_english_problem_of_the_real_files_is_taken_for_another_language():
    known = [one for name in ("olympiadbench", "proofbench") for one in problems(real(name))]
    codes = Counter(language_of(one.text) for one in known)
    assert codes == {"en": 583, "": 12}


def test_length_is_counted_in_characters_or_estimated_tokens():
    assert length("x" * 30, 30, 30) is None
    assert length("x" * 29, 30, 40) == ("too short", "29 characters; 30 to 40 are taken")
    assert length("x" * 31, 0, 30) == ("too long", "31 characters; 0 to 30 are taken")
    # 26 characters / 2.5 = 10.4, so 11 tokens
    assert length("x" * 26, 0, 10, unit="tokens") == ("too long", "11 tokens; 0 to 10 are taken")
    with pytest.raises(ConfigError, match="low <= high"):
        length("x", 5, 4)
