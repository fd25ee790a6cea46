"""Fuzz targets of text that a policy writes or a user types: verdicts, verdict formats, rules, loss modes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import torch

from fuzz.checks import Refused, json_of, outcome, text_of
from pv_judge.pages.text import markdown, one_line, plain
from pv_rl.errors import PluginError
from pv_rl.losses.mode import find_mode, resolve_mode
from pv_rl.losses.stats import step_stats
from pv_rl.rewards.degeneration import BUILTIN_RULES, MOST_SPANS, find_anomalies, rules_from_config
from pv_rl.verdict import parse_verdict
from pv_verdicts import Answer, VerdictFormat, build_format
from pv_verdicts.pattern import compile_pattern, read_before_verdict

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "grade": ("grade", {}),
    "halves": ("grade", {"grades": [0, 0.5, 1], "accept": 0.5}),
    "first_error": ("first_error", {}),
    "first_error from 0": ("first_error", {"first": 0, "near": 0.5}),
    "verdict": ("verdict", {}),
}


def verdict(data: bytes) -> None:
    """Only what follows `</think>` counts; marks behind it do not; the last line decides."""
    text = text_of(data)
    found = outcome(parse_verdict, text)
    assert found in (True, False, None)
    assert parse_verdict("### True\n</think>" + text) is found
    assert parse_verdict("All steps hold.\n" + text) is found
    assert parse_verdict(text + "\n<|im_end|>\n") is found
    assert parse_verdict(text + "x") is None
    for truth in (True, False):
        assert parse_verdict(f"{text}</think>\nAll steps were read.\n### {truth}") is truth


@cache
def _format(name: str) -> VerdictFormat:
    kind, options = FORMATS[name]
    return build_format(kind, options)


def formats(data: bytes) -> None:
    """Answers are ones that the format allows, and a truth that is written as text is read as the same."""
    text = text_of(data)
    for name in FORMATS:
        form = _format(name)
        answer = outcome(form.read, text)
        assert answer == form.read("\\boxed{1}\n### Grade: 1\n</think>" + text)
        _check_answer(form, answer)
        truth = outcome(form.read_truth, text)
        if isinstance(truth, Refused):
            continue
        if form.truth == "grade":
            assert 0 <= truth <= 1
            assert abs(form.read_truth(truth * form.grades[-1]) - truth) < 1e-9
        for given in (answer, Answer(), Answer(accepts=True, grade=1.0, first_error=0)):
            assert 0 <= form.score(given, truth) <= 1
    end = f"{text}</think>\nAll steps were read.\n"
    assert _format("grade").read(end + "### Grade: 5").grade == 5 / 7
    assert _format("first_error").read(end + "### First wrong step: 3").first_error == 3


def _check_answer(form: VerdictFormat, answer: Answer) -> None:
    if form.truth == "grade" and answer.grade is not None:
        assert any(abs(answer.grade * form.grades[-1] - one) < 1e-9 for one in form.grades)
        assert answer.accepts is (answer.grade >= form.accept)
    if form.truth == "first_error":
        assert (answer.accepts is None) is (answer.first_error is None)
        assert answer.first_error is None or answer.first_error >= 0


def pattern(data: bytes) -> None:
    """A user's pattern, on a trace that it was not written for."""
    expression, _, trace = text_of(data).partition("\n")
    made = outcome(compile_pattern, expression)
    if not isinstance(made, Refused):
        found, group = read_before_verdict(trace + "</think>\nStep 3 is wrong.\n### False", made, ())
        assert found is False
        assert group is None or isinstance(group, str)


def rules(data: bytes) -> None:
    """Every rule gives spans of the text; text that is appended far behind it changes no span before."""
    text = text_of(data)
    try:
        found = find_anomalies(text)
    except PluginError as error:  # documented for rules of others: ours do not fail
        raise AssertionError(str(error)) from error
    assert repr(found) == repr(find_anomalies(text))
    assert len(found) <= MOST_SPANS * len(BUILTIN_RULES)
    for one in found:
        assert 0 <= one.start < one.end <= len(text)
    assert all((a.start, a.end, a.rule) <= (b.start, b.end, b.rule) for a, b in pairwise(found))


def rule_settings(data: bytes) -> None:
    """Settings of rules, as a config holds them."""
    settings = json_of(data)
    made = outcome(rules_from_config, settings)
    if not isinstance(made, Refused):
        find_anomalies("Wait, no. " * 12 + "### True\nmore", made)


@cache
def _step() -> Any:
    return step_stats(torch.tensor([1, 2, 5, 0]), "aabb", torch.ones(4))


def loss_mode(data: bytes) -> None:
    """A spec is refused, or gives a mode whose own spec gives it again and whose weights are finite."""
    text = text_of(data)
    mode = outcome(resolve_mode, text)
    outcome(find_mode, text)
    if isinstance(mode, Refused):
        return
    assert resolve_mode(mode.spec) == mode
    assert find_mode(mode.spec) == mode
    responses, batch = _step()
    weights = outcome(mode.weights, responses, batch)
    if not isinstance(weights, Refused):
        assert bool((torch.isfinite(weights) & (weights >= 0)).all())
        assert float(weights[-1]) == 0
        if mode.name in ("grpo", "dapo", "balanced"):
            assert abs(float((weights * responses.length).sum()) - 1) < 1e-5


def shown(data: bytes) -> None:
    """A text in a table, a page or a terminal is one line without control characters."""
    text = text_of(data)
    for line in (plain(text), one_line(text), markdown(plain(text))):
        assert line.isprintable() or not any(one in line for one in "\x00\x07\x1b\n\r\x9b")
