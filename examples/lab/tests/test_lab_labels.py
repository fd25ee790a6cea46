"""Labels of the lab against a checker that knows nothing of the generator: it reads the text and calculates."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pv_lab.errors import ERROR_KINDS
from pv_lab.samples import make_sample

FORM = r"(?:(-?\d+)x )?([+-]\d+)"
OP = r"(plus|minus|times) (\d+)(x?)"
TASK = re.compile(rf"from {FORM}((?: {OP})+) show {FORM} proof (.+)")
STEP = re.compile(rf"S(\d+) {FORM} {OP} = {FORM}")


def form(coefficient: str | None, constant: str) -> tuple[int, int]:
    return int(coefficient or 0), int(constant)


def calculate(value: tuple[int, int], kind: str, operand: str, x: str) -> tuple[int, int]:
    a, b, n = *value, int(operand)
    if kind == "times":
        return a * n, b * n
    n = n if kind == "plus" else -n
    return (a + n, b) if x else (a, b + n)


def read(text: str):
    """Start, operations, stated result and steps of a task's text; fails if a word is left over."""
    task = TASK.fullmatch(text)
    assert task, text
    steps = STEP.findall(task[9])
    assert " ".join(m[0] for m in STEP.finditer(task[9])) == task[9]
    return form(task[1], task[2]), re.findall(OP, task[3]), form(task[7], task[8]), steps


def check(text: str) -> bool:
    """True if the proof applies the question's operations in order, without a gap or a wrong value."""
    value, ops, result, steps = read(text)
    if len(steps) != len(ops):
        return False
    for number, (op, step) in enumerate(zip(ops, steps, strict=True), 1):
        if int(step[0]) != number or form(step[1], step[2]) != value or step[3:6] != op:
            return False
        value = calculate(value, *op)
        if form(step[6], step[7]) != value:
            return False
    return value == result


def true_result(text: str) -> tuple[int, int]:
    value, ops, _, _ = read(text)
    for op in ops:
        value = calculate(value, *op)
    return value


def test_the_checker_itself():
    good = "from 2x +3 times 2 minus 4x show +6 proof S1 2x +3 times 2 = 4x +6 S2 4x +6 minus 4x = +6"
    assert check(good)
    assert not check(good.replace("times 2 = 4x +6 S2", "times 2 = 4x +3 S2"))
    assert not check(good.replace("S2 4x +6 minus", "S2 4x +5 minus"))
    assert not check(good.replace("show +6", "show +7"))
    assert not check(good.split(" S2")[0])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    index=st.integers(0, 10**6),
    difficulty=st.integers(1, 5),
    p_true=st.sampled_from([0.0, 0.5, 1.0]),
    split=st.sampled_from(["train", "test"]),
)
def test_label_is_the_checkers_verdict(seed, index, difficulty, p_true, split):
    sample = make_sample(seed=seed, split=split, index=index, difficulty=difficulty, p_true=p_true)
    assert check(sample.text) == sample.label
    assert sample.label == (sample.error_kind == "none") == (sample.error_step == 0)


@pytest.fixture(scope="module")
def wrong():
    return [make_sample(seed=5, split="train", index=i, difficulty=3, p_true=0.0) for i in range(1500)]


def test_every_kind_of_error_occurs(wrong):
    counts = Counter(sample.error_kind for sample in wrong)
    assert set(counts) == set(ERROR_KINDS)
    assert min(counts.values()) >= 30, counts


def test_errors_occur_at_every_step(wrong):
    assert {sample.error_step for sample in wrong} == {1, 2, 3, 4, 5}


def test_only_cancelled_and_skipped_errors_end_in_the_true_result(wrong):
    for sample in wrong:
        _, _, result, _ = read(sample.text)
        assert (result == true_result(sample.text)) == (sample.error_kind in ("cancelled", "skipped_step"))


def test_the_stated_result_never_tells_the_proofs_are_wrong(wrong):
    """The proof ends in the stated result even where that is false, so comparing the two ends is no check."""
    for sample in wrong:
        _, _, result, steps = read(sample.text)
        assert form(steps[-1][6], steps[-1][7]) == result


def test_error_step_is_the_first_one_that_is_wrong(wrong):
    for sample in wrong:
        value, ops, _, steps = read(sample.text)
        for number, (op, step) in enumerate(zip(ops, steps, strict=False), 1):
            right = calculate(value, *op)
            fine = form(step[1], step[2]) == value and step[3:6] == op and form(step[6], step[7]) == right
            assert fine == (number < sample.error_step)
            if not fine:
                break
            value = right


def test_difficulty_makes_proofs_longer_and_numbers_larger():
    def mean(difficulty):
        samples = [
            make_sample(seed=1, split="train", index=i, difficulty=difficulty, p_true=1.0) for i in range(200)
        ]
        words = [word for sample in samples for word in sample.text.split()]
        largest = max(abs(int(word)) for word in words if re.fullmatch(r"[+-]\d+", word))
        return sum(len(sample.steps) for sample in samples) / 200, largest

    values = [mean(difficulty) for difficulty in range(1, 6)]
    assert values == sorted(values)
    assert values[0][0] < 3 < 6 == values[-1][0]
    assert values[0][1] <= 30 < 90 < values[-1][1]
