"""Limits of an endpoint, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from judge_server.virtual_time import now, run

from pv_judge.config import Limits, Retries
from pv_judge.rate_limiter import RateLimiter


def make(**limits) -> RateLimiter:
    return RateLimiter(Limits(**limits), Retries(backoff_s=1, max_backoff_s=5), clock=now)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_no_more_than_the_limit_are_in_flight_at_a_time():
    async def check():
        limits, most = make(concurrency=3), 0

        async def request():
            nonlocal most
            slot = await limits.acquire(1)
            most = max(most, limits.in_flight)
            await asyncio.sleep(1)
            slot.done(1, answered=True)

        await asyncio.gather(*(request() for _ in range(10)))
        assert (most, limits.in_flight, limits.waiting, now()) == (3, 0, 0, 4)

    run(check())


def test_who_came_first_goes_first_and_who_is_older_before_that():
    async def check():
        limits, order = make(concurrency=1), []

        async def request(name, age):
            slot = await limits.acquire(1, age)
            order.append(name)
            slot.done(1)

        holder = await limits.acquire(1)
        tasks = [
            asyncio.ensure_future(request(*one))
            for one in [("a", 5), ("b", 5), ("c", 1), ("d", float("inf"))]
        ]
        await settle()
        holder.done(1)
        await asyncio.gather(*tasks)
        assert order == ["c", "a", "b", "d"]

    run(check())


def test_a_place_given_back_twice_counts_once():
    async def check():
        limits = make(concurrency=2)
        slot, _ = await limits.acquire(1), await limits.acquire(1)
        slot.done(1)
        slot.done(1)
        slot.unused()
        assert limits.in_flight == 1

    run(check())


@pytest.mark.parametrize("granted", [False, True])
def test_who_is_cancelled_while_waiting_gives_the_place_back(granted):
    async def check():
        limits = make(concurrency=1)
        holder = await limits.acquire(1)
        waiter = asyncio.ensure_future(limits.acquire(1))
        behind = asyncio.ensure_future(limits.acquire(1))
        await settle()
        if granted:  # the place is his, and he is cancelled before he can take it
            holder.done(1)
        waiter.cancel()
        await settle()
        if not granted:
            holder.done(1)
        slot = await behind
        assert limits.in_flight == 1
        slot.done(1)
        assert limits.in_flight == limits.waiting == 0

    run(check())


def test_no_minute_has_more_requests_than_allowed():
    async def check():
        limits, times = make(concurrency=100, requests_per_minute=10), []
        for _ in range(35):
            slot = await limits.acquire(1)
            times.append(now())
            await asyncio.sleep(0.5)
            slot.done(1)
        for begin in times:
            assert sum(begin <= time < begin + 60 for time in times) <= 10
        assert times[9:11] == [4.5, 60]
        assert times[-1] == pytest.approx(182)  # the fourth ten begins at 180

    run(check())


def test_no_minute_has_more_tokens_than_allowed():
    async def check():
        limits = make(tokens_per_minute=1000)
        for _ in range(4):
            (await limits.acquire(300)).done()
        assert now() == 60  # 900 in the first minute

    run(check())


def test_tokens_are_corrected_by_what_the_server_counted():
    async def check():
        limits = make(tokens_per_minute=1000)
        for _ in range(10):
            (await limits.acquire(600)).done(100, answered=True)
        assert now() == 60  # 5 x 100 + 600 is too much: five in a minute
        heavy = await limits.acquire(100)
        heavy.done(950)
        await limits.acquire(100)
        assert now() == 120

    run(check())


def test_a_request_above_the_allowance_goes_when_the_minute_is_empty():
    async def check():
        limits = make(tokens_per_minute=1000)
        (await limits.acquire(10)).done()
        (await limits.acquire(5000)).done()
        assert now() == 60
        await limits.acquire(10)
        assert now() == 120

    run(check())


def test_a_request_that_was_not_sent_takes_nothing_of_the_minute():
    async def check():
        limits = make(requests_per_minute=1, tokens_per_minute=100)
        (await limits.acquire(100)).unused()
        await limits.acquire(100)
        assert now() == 0

    run(check())


def test_who_waits_for_the_minute_and_is_cancelled_does_not_hold_up_others():
    async def check():
        limits = make(tokens_per_minute=100)
        (await limits.acquire(90)).done()
        big = asyncio.ensure_future(limits.acquire(50))
        small = asyncio.ensure_future(limits.acquire(10))
        await settle()
        assert not small.done()  # in order
        big.cancel()
        await small
        assert now() == 0

    run(check())


def test_an_overload_halves_once_for_all_that_were_in_flight():
    async def check():
        limits = make(concurrency=16)
        slots = [await limits.acquire(1) for _ in range(16)]
        for slot in slots[:10]:
            slot.done(0, overload=True)
        assert limits.concurrency == 8
        for slot in slots[10:]:
            slot.done(0, overload=True)
        assert limits.concurrency == 8
        (await limits.acquire(1)).done(0, overload=True)
        assert limits.concurrency == 4

    run(check())


def test_answers_let_it_grow_back_to_the_limit_and_no_further():
    async def check():
        limits = make(concurrency=4)
        (await limits.acquire(1)).done(0, overload=True)
        assert limits.concurrency == 2
        for answers, concurrency in [(1, 2), (1, 3), (2, 3), (1, 4), (20, 4)]:
            for _ in range(answers):
                (await limits.acquire(1)).done(1, answered=True)
            assert limits.concurrency == concurrency

    run(check())


def test_failures_of_other_kinds_change_nothing():
    async def check():
        limits = make(concurrency=4)
        for _ in range(20):
            (await limits.acquire(1)).done(0)
        assert limits.concurrency == 4

    run(check())


def test_where_it_cannot_be_halved_the_endpoint_rests_longer_and_longer_until_an_answer():
    async def check():
        limits, rests = make(concurrency=1), []
        for overload in [True, True, True, True, True, False, True]:
            await asyncio.sleep(limits.pause_left_s())
            (await limits.acquire(1)).done(0, overload=overload, answered=not overload)
            rests.append(limits.pause_left_s())
        assert rests == [1, 2, 4, 5, 5, 0, 1]
        assert limits.concurrency == 1

    run(check())


def test_without_adaption_the_concurrency_stays():
    async def check():
        limits = make(concurrency=8, adaptive=False)
        (await limits.acquire(1)).done(0, overload=True)
        assert limits.concurrency == 8
        assert limits.pause_left_s() == 1

    run(check())


def test_a_pause_sends_all_away_until_it_is_over():
    async def check():
        limits = make(concurrency=1)
        slot = await limits.acquire(1)
        waiters = [asyncio.ensure_future(limits.acquire(1)) for _ in range(3)]
        await settle()
        limits.pause(7)
        limits.pause(3)  # the longer one counts
        assert await asyncio.gather(*waiters) == [None, None, None]
        slot.done(1)
        assert await limits.acquire(1) is None
        assert limits.pause_left_s() == 7
        await asyncio.sleep(7)
        assert await limits.acquire(1) is not None
        assert limits.in_flight == 1

    run(check())
