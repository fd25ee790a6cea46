"""The rules on real texts: none is hit but for a reason that somebody found right, and most of what is spoiled is."""

from __future__ import annotations

from collections import Counter

import pytest
from rule_gate import MEANT_FOR, degenerate_texts, spoiled_and_fluent
from traces.corrupt import KINDS, STRENGTHS, VERDICT
from traces.real import DATA, real_traces

from pv_rl.rewards.degeneration import BUILTIN_RULES, find_anomalies

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real texts are not at {DATA}")

FLOORS = {  # share of the spoiled texts that the gate sees, light, medium and heavy together; docs/concepts/rules.md
    "phrase_loop": 0.83,
    "drifting_phrase": 0.45,
    "sentence_again": 0.80,
    "sentence_cycle": 0.90,
    "reworded_sentence": 0.80,
    "self_interruption": 0.50,
    "false_starts": 0.50,
    "token_runaway": 0.55,
    "character_runaway": 0.50,
    "line_runaway": 0.60,
    "format_chatter": 0.60,
    "chat_marks": 1.0,
    "bare_verdict": 1.0,
    "text_after_verdict": 1.0,
    "broken_encoding": 0.60,
    "script_soup": 0.88,
}


@pytest.fixture(scope="module")
def traces():
    return real_traces()


@pytest.fixture(scope="module")
def seen(traces):
    """Of the half that is reported: each text, and the rules that hit it."""
    labelled = spoiled_and_fluent(traces, "report")
    return [(one, {anomaly.rule for anomaly in find_anomalies(one.text)}) for one in labelled]


def test_no_real_text_is_hit_without_a_reason_that_was_found_right(traces):
    hits = {(trace.name, one.rule) for trace in traces for one in find_anomalies(trace.text)}
    reviewed = set(degenerate_texts())
    assert hits - reviewed == set()
    assert reviewed - hits == set(), "benchmarks/traces/degenerate.txt lists texts that are no longer hit"
    assert sum(trace.writer == "judge" for trace in traces) >= 300


@pytest.mark.parametrize("kind", FLOORS)
def test_most_of_what_is_spoiled_is_seen(seen, kind):
    hits = [bool(rules) for one, rules in seen if one.kind == kind]
    assert sum(hits) / len(hits) >= FLOORS[kind]


@pytest.mark.parametrize("kind", FLOORS)
def test_what_is_badly_spoiled_is_seen(seen, kind):
    hits = [bool(rules) for one, rules in seen if one.kind == kind and one.strength == "heavy"]
    assert sum(hits) / len(hits) >= {"drifting_phrase": 0.85, "reworded_sentence": 0.92}.get(kind, 1.0)


def test_the_set_is_large_and_of_every_kind(seen):
    kinds = Counter(one.kind for one, _ in seen)
    assert kinds["fluent"] >= 1000
    assert sum(kinds.values()) - kinds["fluent"] >= 1000
    assert set(kinds) == {"fluent", *KINDS}
    strengths = Counter((one.kind, one.strength) for one, _ in seen if one.kind != "fluent")
    assert len(strengths) == len(KINDS) * len(STRENGTHS)
    assert min(strengths.values()) >= 20
    assert set(MEANT_FOR) == set(KINDS)
    assert set().union(*MEANT_FOR.values()) == {rule.name for rule in BUILTIN_RULES}


def test_the_set_is_the_same_each_time_and_its_parts_are_apart(traces, seen):
    report = [one for one, _ in seen]
    assert spoiled_and_fluent(traces, "report") == report
    tune = spoiled_and_fluent(traces, "tune")
    assert not {one.trace.name for one in tune} & {one.trace.name for one in report}
    for half in (tune, report):
        fluent = {one.trace.name for one in half if one.kind == "fluent"}
        assert not fluent & {one.trace.name for one in half if one.kind != "fluent"}


def test_what_is_spoiled_differs_from_its_source_and_ends_with_a_verdict(seen):
    spoiled = [one for one, _ in seen if one.kind != "fluent"]
    assert all(one.text != one.trace.text for one in spoiled)
    assert all(
        VERDICT.search(one.text) or one.kind in ("text_after_verdict", "bare_verdict") for one in spoiled
    )
