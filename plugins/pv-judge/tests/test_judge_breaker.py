"""The circuit breaker, by a clock that the tests set."""

from __future__ import annotations

from typing import get_args

import pytest

from pv_judge.answer import FailureKind
from pv_judge.breaker import REFUSED, SERVER_FAILED, CircuitBreaker
from pv_judge.config import Breaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(Breaker(failures=3, probe_after_s=5.0), clock=clock)


def fail(breaker: CircuitBreaker, times: int = 1, kind: FailureKind = "timeout") -> None:
    for _ in range(times):
        breaker.enter().ended(kind)


def test_it_opens_after_so_many_failures_in_a_row(breaker):
    fail(breaker, 2)
    assert breaker.closed
    assert breaker.wait_s() == 0
    fail(breaker)
    assert not breaker.closed
    assert breaker.wait_s() == 5
    assert breaker.enter() is None
    assert breaker.opened == 1


def test_an_answer_breaks_the_row(breaker):
    fail(breaker, 2)
    breaker.enter().ended(None)
    fail(breaker, 2)
    assert breaker.closed


@pytest.mark.parametrize("kind", sorted(set(get_args(FailureKind)) - SERVER_FAILED - REFUSED))
def test_a_server_that_answers_is_not_down(breaker, kind):
    fail(breaker, 10, kind)
    assert breaker.closed


def test_429_is_not_a_failure_of_the_server_and_500_is():
    assert "rate_limited" not in SERVER_FAILED
    assert {"connect", "timeout", "reset", "server_error", "bad_response", "too_large"} == SERVER_FAILED


def test_one_request_that_is_refused_opens_it_and_the_second_ends_the_waiting(breaker, clock):
    late = breaker.enter()
    fail(breaker, 1, "authentication")
    assert (breaker.closed, breaker.refused, breaker.wait_s()) == (
        False,
        False,
        0,
    )  # the first probe goes at once
    probe = breaker.enter()
    assert breaker.enter() is None
    probe.ended("quota")
    assert (breaker.refused, breaker.wait_s(), breaker.opened) == (True, 5, 1)
    clock.now += 4
    late.ended("authentication")  # sent before it opened, and worth as much
    assert breaker.wait_s() == 5
    clock.now += 5
    breaker.enter().ended("connect")  # the server is down now, and may come back
    assert (breaker.refused, breaker.closed) == (False, False)
    clock.now += 5
    breaker.enter().ended(None)
    assert breaker.closed


def test_one_probe_goes_through_each_time(breaker, clock):
    fail(breaker, 3)
    clock.now += 5
    assert breaker.enter() is not None
    assert breaker.enter() is None
    clock.now += 4.9
    assert breaker.enter() is None
    clock.now += 0.1
    assert breaker.enter() is not None  # the first hangs; it is not waited for
    assert breaker.probes == 2


def test_a_probe_that_succeeds_closes_it(breaker, clock):
    fail(breaker, 3)
    clock.now += 5
    breaker.enter().ended(None)
    assert breaker.closed
    fail(breaker, 2)
    assert breaker.closed  # the row begins anew


def test_a_probe_that_fails_leaves_it_open_for_another_while(breaker, clock):
    fail(breaker, 3)
    clock.now += 5
    probe = breaker.enter()
    clock.now += 1
    probe.ended("connect")
    assert breaker.wait_s() == 4
    assert breaker.opened == 1


def test_a_probe_that_is_cancelled_makes_room_for_another_at_once(breaker, clock):
    fail(breaker, 3)
    clock.now += 5
    probe = breaker.enter()
    assert breaker.wait_s() == 5
    probe.dropped()
    assert breaker.wait_s() == 0
    assert breaker.enter() is not None


def test_a_request_that_is_cancelled_while_it_is_closed_changes_nothing(breaker):
    breaker.enter().dropped()
    assert breaker.closed


def test_what_was_sent_before_it_opened_neither_closes_it_nor_counts(breaker, clock):
    early = [breaker.enter() for _ in range(3)]
    fail(breaker, 3)
    early[0].ended(None)
    assert not breaker.closed
    early[1].dropped()
    assert breaker.wait_s() == 5
    clock.now += 5
    breaker.enter().ended(None)
    early[2].ended("reset")
    fail(breaker, 2)
    assert breaker.closed


def test_who_waits_is_told_when_the_wait_gets_shorter(clock):
    told = []
    breaker = CircuitBreaker(
        Breaker(failures=1, probe_after_s=5), clock=clock, changed=lambda: told.append(breaker.wait_s())
    )
    fail(breaker)
    assert told == []
    clock.now += 5
    breaker.enter().dropped()
    breaker.enter().ended(None)
    assert told == [0, 0]
