"""Numbers for the metric stream, by hand."""

from __future__ import annotations

import pytest

from pv_judge.answer import Answer, JudgeFailure, Usage
from pv_judge.metrics import Metrics, exposed_wait, percentile


def test_a_reward_that_comes_while_rollouts_are_missing_is_not_exposed():
    spans = [(10.0, 25.0), (20.0, 24.0)]
    assert exposed_wait(spans, (5.0, 25.0)) == 5.0
    assert exposed_wait(spans, (23.0, 25.0)) == 2.0
    assert exposed_wait(spans, (30.0, 31.0)) == 0.0
    assert exposed_wait([(10.0, 12.0), (20.0, 20.0)], (0.0, 20.5)) == 0.0


def test_percentiles_are_values_that_were_seen():
    assert [percentile([4, 1, 3, 2], share) for share in (0.5, 0.95, 1.0)] == [2, 4, 4]
    assert percentile([7.0], 0.5) == 7.0


def test_the_clients_counters_are_told_as_what_is_new():
    tally = Metrics()
    first = tally.since_last({"retries": 2, "failures/reset": 1, "questions": 9})
    assert first == {
        "retries/sum": 2,
        "hedges/sum": 0,
        "failovers/sum": 0,
        "breaker_openings/sum": 0,
        "usage_capped/sum": 0,
        "failures/reset/sum": 1,
    }
    second = tally.since_last({"retries": 5, "failures/reset": 1, "failures/timeout": 4})
    assert (second["retries/sum"], second["failures/timeout/sum"]) == (3, 4)
    assert "failures/reset/sum" not in second


def test_a_report_counts_and_begins_anew():
    tally = Metrics()
    usage = Usage(prompt_tokens=100, completion_tokens=10)
    for latency in (1.0, 3.0):
        tally.add(
            Answer(
                text="", value=1, model="m", endpoint="e", usage=usage, usd=0.5, requests=2, latency_s=latency
            )
        )
    tally.add(JudgeFailure("late", "timeout", usage, 0.25, 6))
    tally.counts["cache_hits"], tally.counts["cache_misses"] = 1, 3
    tally.add_span(("a", 0), (1.0, 4.0))
    tally.add_span(("b", 0), (2.0, 9.0))
    assert tally.report([("a", 0), ("c", 1)], (0.0, 3.5)) == pytest.approx(
        {
            "requests/sum": 10,
            "tokens/sum": 330,
            "usd/sum": 1.25,
            "failed/sum": 1,
            "failed/timeout/sum": 1,
            "disk_errors/sum": 0,
            "cache_hit_rate": 0.25,
            "latency_p50_s": 1.0,
            "latency_p95_s": 3.0,
            "exposed_wait_s/sum": 2.5,
        }
    )
    after = tally.report([("b", 0)], (0.0, 5.0))
    assert after["requests/sum"] == after["usd/sum"] == 0
    assert after["exposed_wait_s/sum"] == 3.0
    assert "latency_p50_s" not in after
