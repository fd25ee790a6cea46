"""Verdict formats: what is read from the end of a trace, and what it is paid."""

from __future__ import annotations

import doctest
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from pv_rl.errors import ConfigError, DataError
from pv_verdicts import Answer, build_format

FIVE = [
    "### Grade: 5",
    "**### Grade: 5/7**<|im_end|>",
    "### grade: 5 out of 7\n\n",
    "Grade: 5 / 7",
    "* **Grade:** 5.0",
    "### Grade：５／７",
    "### Final grade = `5` points.",
    "### Grade: 5\u200b </s>\r\n***\n",
    "so it earns \\boxed{5}.",
    "\\[\n\\boxed{\\text{5}}\n\\]",
    "### Grade: $\\boxed{5}/7$",
    "long " * 200 + "so \\boxed{5} points.",
    "### Grade: 5\n\n### Grade: 5/7",
    'The claim "n is odd" is false, so it earns $\\boxed{5}$.',
    'It says "n is odd"\n\\boxed{5}',
    "The answer is \\boxed{3}.\n### Grade: 5",
    "It does not hold\n### Grade: 5",
    "### False\n### Grade: 5",
    "<think>### Grade: 3</think>\n### Grade: 5",
]
NO_GRADE = [
    "### Grade: 8",
    "### Grade: 5.5",
    "### Grade: 5/8",
    "### Grade: -5",
    "### Grade: 5*7",
    "### Grade: 5²",
    "### Grade: 6½",
    "### Grade: 1e0",
    "### Grade: five",
    "### Grade: 5\nor not",
    "### Grade: 5 (partial)",
    "### Grade: 7 or 5",
    "### Grade: 5 ### Grade: 7",
    "### Grade: 5\n---\n### Grade: 7",
    "\\boxed{5} or \\boxed{7}",
    "\\boxed{5} would be too much",
    "far from \\boxed{7}",
    "it is not \\boxed{7}",
    "the last line is one of:\n### Grade: 5",
    "> ### Grade: 5",
    '"### Grade: 5"',
    'it says "\\boxed{5}"',
    'it says "\\boxed{5}',
    "it says “\\boxed{5}",
    "### Grade: “5”",
    "```\n### Grade: 5\n```",
    "### Upgrade: 5",
    "### Grade:",
    "<think>### Grade: 5",
    "### Grade: 5</think>",
    "### Grade: " + "9" * 100_000,
]


def test_the_examples_of_the_page_say_what_they_say() -> None:
    page = Path(__file__).parents[1] / "README.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (found.attempted > 7, found.failed) == (True, 0)


@pytest.mark.parametrize("end", FIVE)
def test_a_grade_is_read_from_the_last_line(end: str) -> None:
    assert build_format("grade").read(f"Step 2 has a gap.\n{end}") == Answer(accepts=False, grade=5 / 7)


@pytest.mark.parametrize("end", NO_GRADE)
def test_in_doubt_there_is_no_grade(end: str) -> None:
    assert build_format("grade").read(f"Step 2 has a gap.\n{end}") == Answer()


@pytest.mark.parametrize(
    "end",
    [
        *("### Grade: 1/2", "### Grade: ½", "### Grade: .5", "### Grade: 0.5/1", "\\boxed{\\frac{1}{2}}"),
        "Based on my evaluation, the final overall score should be:\n\\boxed{0.5}",
    ],
)
def test_a_half_has_many_spellings(end: str) -> None:
    assert build_format("grade", {"grades": [0, 0.5, 1]}).read(end).grade == 0.5


def test_a_grade_is_paid_by_its_distance_and_its_form() -> None:
    form = build_format("grade", {"grades": [0, 0.5, 1], "require": ["Summary:"]})
    trace = "Summary: a gap in step 2.\n### Grade: 1/2"
    assert [form.score(form.read(trace), form.read_truth(truth)) for truth in (0, 0.5, 1)] == [0.5, 1.0, 0.5]
    assert form.score(form.read(trace.removeprefix("Summary:")), 0.5) == 0.0
    assert form.score(form.read(f"<think>Summary:</think>{trace[8:]}"), 0.5) == 0.0


def test_a_grade_may_stand_behind_other_words_and_a_pass_mark_be_lower() -> None:
    form = build_format("grade", {"mark": "评分:", "accept": 6})
    assert form.read("第二步有误。\n### 评分：６分") == Answer(accepts=True, grade=6 / 7)
    assert form.read("### Grade: 6") == Answer()
    assert build_format("grade", {"points": 100}).read("### Grade: 5*7") == Answer()  # not 57


@pytest.mark.parametrize("value", ["3", "**3**", "Step 3.", "S3", "#3", "３", "\\boxed{3}", "3.0"])
def test_a_first_wrong_step_is_read(value: str) -> None:
    answer = build_format("first_error").read(f"It divides by 0.\n### First wrong step: {value}")
    assert answer == Answer(accepts=False, first_error=3)


@pytest.mark.parametrize("value", ["none", "None.", "0", "-1", "no error", "all steps are right", "无"])
def test_no_wrong_step_is_read(value: str) -> None:
    answer = build_format("first_error").read(f"### First wrong step: {value}")
    assert answer == Answer(accepts=True, first_error=0)


@pytest.mark.parametrize("value", ["3 or 4", "2, 5", "4/2", "-2", "3rd", "3.5", "nothing", "9" * 12, ""])
def test_in_doubt_there_is_no_step(value: str) -> None:
    assert build_format("first_error").read(f"### First wrong step: {value}") == Answer()


def test_a_step_is_paid_where_it_is_exact_or_beside_it() -> None:
    form = build_format("first_error", {"near": 0.5})
    answer = form.read("### First wrong step: 3")
    assert [form.score(answer, form.read_truth(step)) for step in (3, 4, 5, -1)] == [1.0, 0.5, 0.0, 0.0]
    right, first = form.read("### First wrong step: none"), form.read("### First wrong step: 1")
    assert form.score(right, 0) == 1.0
    assert form.score(first, 0) == form.score(right, 1) == 0.0  # a wrong proof is not beside a right one


def test_steps_may_be_counted_from_zero() -> None:
    form = build_format("first_error", {"first": 0})
    assert form.read("### First wrong step: 0").first_error == form.read_truth(0) == 1
    assert form.read("### First wrong step: none").first_error == form.read_truth(-1) == 0
    assert build_format("first_error").read_truth(0) == 0


def test_a_pattern_reads_the_step_before_a_verdict() -> None:
    form = build_format("first_error", {"pattern": r"S(\d+) wrong"})
    assert form.read("S2 wrong? No. So S3 wrong ### False").first_error == 3
    assert form.read("so S3 wrong, no: all fine ### True") == Answer(accepts=True, first_error=0)
    assert form.read("looks wrong ### False") == Answer(accepts=False)
    assert form.read("S3 wrong") == Answer()


def test_a_pattern_that_backtracks_is_stopped() -> None:
    form = build_format("first_error", {"pattern": r"(?:a+)+b(\d)"})
    begin = time.monotonic()
    assert form.read("a" * 3000 + " ### False") == Answer(accepts=False)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("value", "points"),
    [
        *((5, 5), (5.0, 5), ("5", 5), (" 5/7", 5), ("５", 5), ("3 1/2", 3.5), (1e-05, 1e-05)),
        *((np.int64(5), 5), (np.float32(5), 5), (np.array(5), 5), (Decimal("5"), 5)),
        *((True, 7), (np.True_, 7), ("False", 0)),
    ],
)
def test_a_grade_of_a_data_file_is_read_in_every_form(value: object, points: float) -> None:
    assert build_format("grade").read_truth(value) == pytest.approx(points / 7)


@pytest.mark.parametrize("value", [5, 5.0, "5", "5.0", np.int64(5), np.float64(5), Decimal(5)])
def test_a_step_of_a_data_file_is_read_in_every_form(value: object) -> None:
    assert build_format("first_error").read_truth(value) == 5


REFUSED = [
    float("nan"),
    float("inf"),
    None,
    "",
    "none",
    "7 or 5",
    "1_0",
    b"5",
    [5],
    {},
    -2,
    10**5000,
    "5" * 10**6,
]


@pytest.mark.parametrize("name", ["grade", "first_error"])
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_truth_that_is_none_is_refused(name: str, number: int) -> None:
    with pytest.raises(DataError, match="of a row is"):
        build_format(name).read_truth(REFUSED[number])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("grade", {"points": points}) for points in (0, 10**9, 10**400, True, "7", float("nan"))),
        *(("grade", {"grades": grades}) for grades in (5, ["a", "b"], [1], [1, 1], [-1, 1], "01", {0: 1})),
        ("grade", {"grades": [0, 10**400]}),
        *(("grade", {"accept": accept}) for accept in (0, 8, 10**400, "6", True, float("nan"))),
        *(("grade", {"require": texts}) for texts in (5, [""], [5])),
        *(("grade", {"mark": mark}) for mark in ("", 5, "a\nb")),
        *(("first_error", {"near": near}) for near in (2, "a", True, float("nan"))),
        *(("first_error", {"first": first}) for first in (2, True, None)),
        *(
            ("first_error", {"pattern": pattern})
            for pattern in (5, "", "(", "a", "(a)(b)", ["(a)"], "(a)" * 999)
        ),
        ("grade", {"maximum": 7}),
        ("grades", {}),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        build_format(name, options)


def test_a_pattern_reads_the_points_before_a_verdict() -> None:
    form = build_format("grade", {"pattern": r"(\d+) of 7 points"})
    assert form.read("2 of 7 points, no, 3 of 7 points ### False") == Answer(accepts=False, grade=3 / 7)
    assert form.read("3 of 7 points ### True") == Answer(accepts=True, grade=1.0)
    assert form.read("9 of 7 points ### False") == form.read("### False") == Answer(accepts=False)
    assert form.read("3 of 7 points") == Answer()
    with pytest.raises(ConfigError, match="2 groups"):
        build_format("grade", {"pattern": "(a)(b)"})
