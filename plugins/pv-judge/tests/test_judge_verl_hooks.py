"""The trainer hooks of the judge, with services that answer what a test says."""

from __future__ import annotations

from pv_judge import verl_hooks


def test_of_several_judges_counts_are_added_and_the_largest_of_the_rest_is_told(monkeypatch):
    class Service:
        def __init__(self, numbers):
            self.numbers = numbers

        def report(self, step, rows, window):
            return self.numbers

    reports = [
        {"usd/sum": 1.0, "latency_p50_s": 2.0},
        {"usd/sum": 0.5, "latency_p50_s": 3.0, "failed/sum": 1},
    ]
    monkeypatch.setattr(verl_hooks, "driver_services", lambda: [Service(one) for one in reports])
    assert verl_hooks.judge_numbers(1, [], None) == {
        "pv_rl/judge/usd/sum": 1.5,
        "pv_rl/judge/latency_p50_s": 3.0,
        "pv_rl/judge/failed/sum": 1.0,
    }
