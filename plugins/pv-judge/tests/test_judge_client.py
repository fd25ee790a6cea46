"""The client's decisions in virtual time, between endpoints whose every answer the tests write."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from collections.abc import Callable

import pytest
from judge_server.virtual_time import now, run

from pv_judge import router
from pv_judge.answer import JudgeFailure, Usage
from pv_judge.breaker import REFUSED
from pv_judge.budget import BudgetKeeper
from pv_judge.client import JudgeClient
from pv_judge.completion import Completion, RequestFailed
from pv_judge.config import Breaker, Budget, Endpoint, Hedging, JudgeConfig, Limits, Price, Retries
from pv_rl.errors import ConfigError

MESSAGES = [{"role": "user", "content": "Is this fluent?"}]
PAID = Usage(prompt_tokens=10, completion_tokens=2)
OK = "ok"
FINAL = ["refusal", "truncated", "no_text", "client_error", "context_length", "too_large", *sorted(REFUSED)]
PASSING = ["connect", "timeout", "reset", "rate_limited", "server_error", "bad_response"]
SETTINGS = {
    "retries": Retries(attempts=4, backoff_s=1, max_backoff_s=3),
    "breaker": Breaker(failures=100),
    "prices": {"judge": Price(input=1e6, output=1e6)},  # a dollar a token
}


class Endpoints:
    """Stands for `EndpointClient`. `plan[url]` is what its requests get in turn, the last for ever: a text, a failure,
    or seconds to wait before either."""

    def __init__(self, plan: dict[str, list]) -> None:
        self.plan = plan
        self.sent: list[tuple[float, str]] = []
        """When, and where to."""
        self.seeds: list[int | None] = []
        self.in_flight = self.most_in_flight = 0

    def __call__(self, endpoint: Endpoint, config: JudgeConfig) -> Endpoints._One:
        return self._One(self, endpoint)

    class _One:
        def __init__(self, all_of_them: Endpoints, endpoint: Endpoint) -> None:
            self.all, self.name, self.count = all_of_them, endpoint.url.removeprefix("http://"), 0

        def body(self, messages, seed: int | None = None) -> bytes:
            return json.dumps([*messages] if seed is None else [*messages, seed]).encode()

        def tidy(self, text: str) -> str:
            return text

        async def send(self, body: bytes) -> Completion:
            last = json.loads(body)[-1]
            self.all.seeds.append(last if isinstance(last, int) else None)
            plan = self.all.plan[self.name]
            what = plan[min(self.count, len(plan) - 1)]
            self.count += 1
            self.all.sent.append((round(now(), 6), self.name))
            self.all.in_flight += 1
            self.all.most_in_flight = max(self.all.most_in_flight, self.all.in_flight)
            try:
                for one in what if isinstance(what, list) else [what]:
                    if isinstance(one, int | float):
                        await asyncio.sleep(one)
                    elif isinstance(one, RequestFailed):
                        raise RequestFailed(
                            one.kind,
                            str(one),
                            usage=one.usage,
                            status=one.status,
                            retry_after_s=one.retry_after_s,
                        )
                    else:
                        return Completion(text=one, usage=PAID)
            finally:
                self.all.in_flight -= 1
            raise AssertionError("a plan has to end")

        async def aclose(self) -> None:
            pass


class Largest(random.Random):
    """Jitter at its largest."""

    def uniform(self, a: float, b: float) -> float:
        return b


def fails(kind: str, usage: Usage | None = Usage(), **more) -> RequestFailed:  # noqa: B008 - frozen
    return RequestFailed(kind, f"as planned: {kind}", usage=usage, **more)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[JudgeClient, Endpoints]]:
    def make(plan: dict[str, list], **settings) -> tuple[JudgeClient, Endpoints]:
        endpoints = Endpoints(plan)
        monkeypatch.setattr(router, "EndpointClient", endpoints)
        config = JudgeConfig(
            endpoints=tuple(Endpoint(url=f"http://{name}", model="judge") for name in plan),
            **SETTINGS | settings,
        )
        return JudgeClient(config, clock=now, rng=Largest()), endpoints

    return make


def held(client: JudgeClient) -> list:
    """All that a client may still hold; zeros when nothing is under way."""
    routes = client.router.routes
    return [len(client.budget.open), *(n for r in routes for n in (r.limiter.in_flight, r.limiter.waiting))]


async def failure_of(question) -> JudgeFailure:
    with pytest.raises(JudgeFailure) as caught:
        await question
    return caught.value


def test_an_answer_says_what_it_took(judge):
    async def check():
        client, _ = judge({"a": [[3, "yes"]]})
        answer = await client.ask(MESSAGES, parse=str.upper)
        assert (answer.text, answer.value, answer.model, answer.endpoint) == (
            "yes",
            "YES",
            "judge",
            "http://a",
        )
        assert (answer.usage, answer.usd, answer.requests, answer.latency_s) == (PAID, 12.0, 1, 3)
        assert client.counters()["answers"] == 1

    run(check())


@pytest.mark.parametrize("kind", PASSING)
def test_what_may_pass_is_asked_again(judge, kind):
    async def check():
        client, endpoints = judge({"a": [fails(kind), fails(kind), OK]})
        answer = await client.ask(MESSAGES)
        assert answer.requests == len(endpoints.sent) == 3
        assert client.counters()[f"failures/{kind}"] == client.counters()["retries"] == 2

    run(check())


@pytest.mark.parametrize("kind", FINAL)
def test_what_cannot_pass_is_final(judge, kind):
    async def check():
        client, endpoints = judge({"a": [fails(kind)]})
        failure = await failure_of(client.ask(MESSAGES))
        assert (failure.kind, failure.requests, len(endpoints.sent)) == (kind, 1, 1)
        assert "as planned" in str(failure)
        assert client.counters()[f"failed/{kind}"] == 1

    run(check())


@pytest.mark.parametrize("kind", ["invalid_json", "wrong_schema"])
def test_an_answer_that_cannot_be_read_is_asked_for_again_and_paid(judge, kind):
    def parse(text):
        if text != OK:
            raise JudgeFailure(f"{text} is no verdict", kind)
        return True

    async def check():
        client, _ = judge({"a": ["perhaps", OK]})
        answer = await client.ask(MESSAGES, parse)
        assert (answer.requests, answer.usd, answer.usage.prompt_tokens) == (2, 24.0, 20)
        client, _ = judge({"a": ["perhaps"]})
        failure = await failure_of(client.ask(MESSAGES, parse))
        assert (failure.kind, failure.requests, failure.usd, failure.text) == (kind, 4, 48.0, "perhaps")
        assert failure.usage == Usage(prompt_tokens=40, completion_tokens=8)
        copy = pickle.loads(pickle.dumps(failure))
        assert (copy.kind, copy.usd, str(copy)) == (kind, 48.0, str(failure))

    run(check())


def test_a_question_that_was_interrupted_goes_on_with_the_next_seed_and_the_next_attempt(judge):
    def unreadable(text: str) -> str:
        raise JudgeFailure("no JSON", "invalid_json")

    async def check():
        plan = [fails("connect", None), "?", fails("no_text", PAID), "never asked for"]
        client, endpoints = judge({"a": plan, "b": ["?"]}, retries=Retries(attempts=5))
        unusable: list[JudgeFailure] = []
        earlier = JudgeFailure("no JSON", "invalid_json", PAID, 0.5, requests=2)
        failure = await failure_of(
            client.ask(
                MESSAGES,
                unreadable,
                seed=lambda unusable: 10 + unusable,
                earlier=earlier,
                on_unusable=unusable.append,
            )
        )
        # a cannot be reached, b and a give unreadable answers: attempts 3, 4 and 5
        assert endpoints.seeds == [12, 12, 13]
        assert [(one.kind, one.requests) for one in unusable] == [("invalid_json", 4), ("invalid_json", 5)]
        assert [one.usage for one in unusable] == [PAID + PAID, PAID + PAID + PAID]
        assert (failure.requests, failure.usage) == (5, PAID + PAID + PAID)
        assert failure.usd == 24.0  # of this run alone

    run(check())


def test_requests_carry_no_seed_unless_one_is_given(judge):
    async def check():
        client, endpoints = judge({"a": ["yes"]})
        await client.ask(MESSAGES)
        assert endpoints.seeds == [None]

    run(check())


def test_a_bug_in_a_parser_is_not_hidden(judge):
    async def check():
        client, _ = judge({"a": [OK]})
        with pytest.raises(ZeroDivisionError):
            await client.ask(MESSAGES, lambda text: 1 / 0)
        assert held(client) == [0, 0, 0]

    run(check())


def test_waits_double_up_to_the_largest(judge):
    async def check():
        client, endpoints = judge(
            {"a": [fails("timeout")]}, retries=Retries(attempts=6, backoff_s=1, max_backoff_s=3)
        )
        failure = await failure_of(client.ask(MESSAGES))
        assert [time for time, _ in endpoints.sent] == [0, 1, 3, 6, 9, 12]  # waits 1, 2, 3, 3, 3
        assert (failure.kind, failure.requests) == ("timeout", 6)

    run(check())


def test_retry_after_holds_for_the_whole_endpoint(judge):
    async def check():
        client, endpoints = judge(
            {"a": [fails("rate_limited", retry_after_s=30.0), OK]}, limits=Limits(concurrency=1)
        )
        await asyncio.gather(client.ask(MESSAGES), client.ask(MESSAGES))
        assert [time for time, _ in endpoints.sent] == [0, 30, 30]

    run(check())


def test_retry_after_of_another_question_is_honoured_too(judge):
    async def check():
        client, endpoints = judge({"a": [fails("server_error", retry_after_s=7.0, status=503), OK]})
        first = asyncio.ensure_future(client.ask(MESSAGES))
        await asyncio.sleep(1)
        await client.ask(MESSAGES)
        await first
        assert [time for time, _ in endpoints.sent] == [0, 7, 7]

    run(check())


def test_429_and_503_slow_the_endpoint_down_and_500_does_not(judge):
    async def check():
        for failure, concurrency in [
            (fails("rate_limited"), 32),
            (fails("server_error", status=503), 32),
            (fails("server_error", status=500), 64),
        ]:
            client, _ = judge({"a": [failure, OK]})
            await client.ask(MESSAGES)
            assert client.router.routes[0].limiter.concurrency == concurrency

    run(check())


@pytest.mark.parametrize("kind", [*FINAL, *PASSING, "nonsense"])
def test_a_question_that_an_endpoint_fails_goes_to_the_next_at_once(judge, kind):
    def parse(text):
        if text != OK:
            raise JudgeFailure(f"{text} is no verdict", "invalid_json")

    async def check():
        client, endpoints = judge({"a": ["perhaps" if kind == "nonsense" else fails(kind)], "b": [OK]})
        answer = await client.ask(MESSAGES, parse)
        assert (answer.endpoint, answer.requests) == ("http://b", 2)
        assert endpoints.sent == [(0, "a"), (0, "b")]
        assert client.counters()["failovers"] == 1

    run(check())


def test_when_all_endpoints_have_failed_a_question_they_are_asked_again_after_a_wait(judge):
    async def check():
        plan = {"a": [fails("server_error")], "b": [fails("truncated")], "c": [fails("timeout"), [9, OK]]}
        client, endpoints = judge(plan)
        assert (await failure_of(client.ask(MESSAGES))).kind == "server_error"
        assert endpoints.sent == [(0, "a"), (0, "b"), (0, "c"), (1, "a")]  # attempts are used up
        client, endpoints = judge(plan, retries=Retries(attempts=9, backoff_s=1, max_backoff_s=3))
        assert (await client.ask(MESSAGES)).endpoint == "http://c"
        assert endpoints.sent == [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (2, "c")]

    run(check())


def test_a_key_that_is_refused_fails_every_question_at_once_until_it_is_mended(judge):
    async def check():
        refused = fails("authentication", status=401)
        client, endpoints = judge(
            {"a": [refused, refused, [1, refused], OK]},
            breaker=Breaker(probe_after_s=10),
            limits=Limits(concurrency=1),
        )
        failures = await asyncio.gather(*(client.ask(MESSAGES) for _ in range(20)), return_exceptions=True)
        assert [(one.kind, one.status) for one in failures] == [("authentication", 401)] * 20
        assert [one.requests for one in failures] == [1, 1] + [0] * 18
        assert "refuses every request: as planned" in str(failures[-1])
        await asyncio.sleep(10)
        first, second = await asyncio.gather(
            client.ask(MESSAGES), client.ask(MESSAGES), return_exceptions=True
        )
        assert (first.requests, second.requests) == (1, 0)  # one finds out, and nobody waits for it
        await asyncio.sleep(10)
        assert (await client.ask(MESSAGES)).text == OK
        assert (await client.ask(MESSAGES)).text == OK
        assert [time for time, _ in endpoints.sent] == [0, 0, 10, 21, 21]
        assert held(client) == [0, 0, 0]

    run(check())


def test_who_waits_for_a_limit_by_the_minute_does_not_wait_for_an_endpoint_that_refuses(judge):
    async def check():
        client, endpoints = judge({"a": [[1, fails("quota")]]}, limits=Limits(requests_per_minute=2))
        await asyncio.gather(*(client.ask(MESSAGES) for _ in range(5)), return_exceptions=True)
        assert (len(endpoints.sent), now()) == (2, 1)

    run(check())


def test_a_refusal_of_one_question_alone_fails_no_other(judge):
    """A firewall answers 403 to a text that it does not like."""

    async def check():
        client, endpoints = judge(
            {"a": [fails("authentication", status=403), [1, OK], OK]}, limits=Limits(concurrency=1)
        )
        first, *others = await asyncio.gather(
            *(client.ask(MESSAGES) for _ in range(5)), return_exceptions=True
        )
        assert (first.kind, [one.text for one in others]) == ("authentication", [OK] * 4)
        assert [time for time, _ in endpoints.sent] == [0, 0, 1, 1, 1]

    run(check())


def test_where_one_endpoint_refuses_the_key_the_other_is_waited_for(judge):
    async def check():
        client, _ = judge(
            {"a": [fails("quota")], "b": [fails("connect", None), OK]},
            breaker=Breaker(failures=1, probe_after_s=10),
        )
        assert [one.endpoint for one in await asyncio.gather(*(client.ask(MESSAGES) for _ in range(3)))] == [
            "http://b"
        ] * 3
        assert now() == 10

    run(check())


def test_no_endpoint_is_asked_twice_for_what_it_cannot_answer(judge):
    async def check():
        client, endpoints = judge({"a": [fails("too_large")], "b": [fails("too_large")]})
        assert (await failure_of(client.ask(MESSAGES))).kind == "too_large"
        assert [name for _, name in endpoints.sent] == ["a", "b"]

    run(check())


def test_a_question_waits_for_an_outage_to_end(judge):
    async def check():
        plan = {"a": [fails("connect", None)] * 8 + [OK]}
        client, endpoints = judge(
            plan, breaker=Breaker(failures=3, probe_after_s=10), limits=Limits(concurrency=3)
        )
        answers = await asyncio.gather(*(client.ask(MESSAGES) for _ in range(20)))
        assert len(answers) == 20
        # Three fail and open the breaker at 0. A probe every 10 s fails five times; the sixth finds the server back.
        assert [time for time, _ in endpoints.sent[:9]] == [0, 0, 0, 10, 20, 30, 40, 50, 60]
        assert {time for time, _ in endpoints.sent[9:]} == {60}
        assert client.counters()["breaker_openings"] == 1
        assert client.counters()["breaker_probes"] == 6
        assert held(client) == [0, 0, 0]

    run(check())


def test_who_had_a_turn_when_the_breaker_opened_gives_it_back(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[1, fails("reset")], OK]},
            breaker=Breaker(failures=1, probe_after_s=10),
            limits=Limits(concurrency=1, requests_per_minute=4),
        )
        await asyncio.gather(*(client.ask(MESSAGES) for _ in range(3)))
        assert [time for time, _ in endpoints.sent] == [0, 11, 11, 11]
        assert held(client) == [0, 0, 0]

    run(check())


def test_the_next_endpoint_answers_while_the_first_is_down_and_the_first_is_taken_back(judge):
    async def check():
        down = [fails("reset"), fails("reset"), OK]
        client, endpoints = judge({"a": down, "b": [OK]}, breaker=Breaker(failures=2, probe_after_s=10))
        for _ in range(3):
            await client.ask(MESSAGES)
        assert [name for _, name in endpoints.sent] == ["a", "b", "a", "b", "b"]
        await asyncio.sleep(10)
        await client.ask(MESSAGES)
        assert [name for _, name in endpoints.sent[5:]] == ["a"]

    run(check())


def test_the_next_endpoint_answers_while_the_first_says_to_wait(judge):
    async def check():
        client, endpoints = judge({"a": [fails("rate_limited", retry_after_s=60.0), OK], "b": [OK]})
        await asyncio.gather(client.ask(MESSAGES), client.ask(MESSAGES))
        assert endpoints.sent == [(0, "a"), (0, "b"), (0, "b")]  # not at 60

    run(check())


def test_the_deadline_ends_a_question_wherever_it_is(judge):
    async def check():
        client, _ = judge({"a": [[fails("reset")], [10**6, OK]]})
        failure = await failure_of(client.ask(MESSAGES, deadline_s=50))
        assert (failure.kind, now(), failure.requests) == ("deadline", 50, 2)
        assert "reset" in str(failure)
        # The prompt of what was under way may be billed: 50 characters are 13 tokens.
        assert failure.usage.prompt_tokens == len(json.dumps(MESSAGES)) // 4 + 1
        client, _ = judge({"a": [fails("rate_limited", retry_after_s=200.0)]})
        assert (await failure_of(client.ask(MESSAGES))).kind == "deadline"
        assert now() == 50 + 120  # deadline_s of the config

    run(check())


def test_the_deadline_counts_the_wait_for_a_turn(judge):
    async def check():
        client, endpoints = judge({"a": [[100, OK]]}, limits=Limits(concurrency=1))
        first = asyncio.ensure_future(client.ask(MESSAGES))
        await asyncio.sleep(1)
        failure = await failure_of(client.ask(MESSAGES, deadline_s=5))
        assert (failure.kind, failure.requests, now()) == ("deadline", 0, 6)
        await first
        assert len(endpoints.sent) == 1
        assert held(client) == [0, 0, 0]

    run(check())


@pytest.mark.parametrize("hedged", [False, True])
@pytest.mark.parametrize("after_s", [0.5, 1.5, 2.5])
def test_a_question_that_is_cancelled_holds_nothing(judge, hedged, after_s):
    """Cancelled in flight (0.5), while it waits before a retry (1.5), in the second request (2.5)."""

    async def check():
        client, endpoints = judge(
            {"a": [[1, fails("reset")], [9, OK]]}, hedging=Hedging(after_s=0.2 if hedged else None)
        )
        task = asyncio.ensure_future(client.ask(MESSAGES))
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert endpoints.in_flight == 0
        assert held(client) == [0, 0, 0]

    run(check())


def test_a_probe_that_is_cancelled_lets_another_go(judge):
    async def check():
        client, endpoints = judge(
            {"a": [fails("connect", None), [50, OK], OK]},
            breaker=Breaker(failures=1, probe_after_s=10),
            retries=Retries(attempts=1),
        )
        await failure_of(client.ask(MESSAGES))
        probe = asyncio.ensure_future(client.ask(MESSAGES))
        await asyncio.sleep(11)
        waits = asyncio.ensure_future(client.ask(MESSAGES))
        await asyncio.sleep(1)
        probe.cancel()
        await waits
        assert [time for time, _ in endpoints.sent] == [0, 10, 12]  # not 20
        await asyncio.gather(probe, return_exceptions=True)

    run(check())


def test_the_slow_tail_is_asked_elsewhere_and_the_first_answer_counts(judge):
    async def check():
        client, endpoints = judge({"a": [[60, "slow"]], "b": [[1, "quick"]]}, hedging=Hedging(after_s=5))
        answer = await client.ask(MESSAGES)
        assert (answer.text, answer.endpoint, answer.latency_s) == ("quick", "http://b", 6)
        assert endpoints.sent == [(0, "a"), (5, "b")]
        assert endpoints.in_flight == 0  # the slow one was cancelled
        # Both are paid: the prompt of the cancelled one by our estimate.
        assert answer.requests == 2
        assert answer.usage.prompt_tokens == 10 + len(json.dumps(MESSAGES)) // 4 + 1
        assert client.counters()["hedges"] == client.counters()["hedges_won"] == 1
        assert client.counters()["retries"] == 0
        assert held(client) == [0, 0, 0, 0, 0]

    run(check())


def test_with_one_endpoint_the_slow_tail_is_asked_there_again(judge):
    async def check():
        client, endpoints = judge({"a": [[7, "slow"], [60, "later"]]}, hedging=Hedging(after_s=5))
        answer = await client.ask(MESSAGES)
        assert (answer.text, answer.latency_s) == ("slow", 7)
        assert [time for time, _ in endpoints.sent] == [0, 5]
        assert client.counters()["hedges_won"] == 0

    run(check())


def test_a_hedge_that_fails_leaves_the_first_request_alone(judge):
    async def check():
        client, _ = judge({"a": [[9, "first"]], "b": [fails("refusal")]}, hedging=Hedging(after_s=5))
        assert (await client.ask(MESSAGES)).text == "first"
        client, _ = judge({"a": [[6, fails("reset")]], "b": [[9, "second"]]}, hedging=Hedging(after_s=5))
        assert (await client.ask(MESSAGES)).text == "second"

    run(check())


def test_both_failures_of_a_hedged_request_lead_to_a_retry(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[6, fails("reset")], OK], "b": [[2, fails("timeout")]]}, hedging=Hedging(after_s=5)
        )
        assert (await client.ask(MESSAGES)).requests == 3
        assert endpoints.sent == [(0, "a"), (5, "b"), (8, "a")]  # the second failure at 7, then 1 s

    run(check())


def test_a_hedge_waits_behind_every_question(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[20, "one"], [4, "two"]]}, hedging=Hedging(after_s=1), limits=Limits(concurrency=2)
        )
        await asyncio.gather(*(client.ask(MESSAGES) for _ in range(4)))
        # 1 and 2 are in flight; 3 and 4 follow in the second place; only then is there room for the first's hedge.
        assert [time for time, _ in endpoints.sent] == [0, 0, 4, 8, 12]
        assert endpoints.most_in_flight == 2
        assert now() == 16

    run(check())


def test_a_hedge_that_still_waits_makes_way_for_the_retry(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[9, fails("reset")], [5, OK], OK]},
            hedging=Hedging(after_s=6),
            limits=Limits(concurrency=1),
        )
        await asyncio.gather(client.ask(MESSAGES), client.ask(MESSAGES))
        assert [time for time, _ in endpoints.sent] == [0, 9, 14]
        assert (client.counters()["retries"], client.counters().get("hedges", 0)) == (1, 0)

    run(check())


def test_hedges_count_as_attempts(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[9, fails("reset")]]}, hedging=Hedging(after_s=1), retries=Retries(attempts=3, backoff_s=0)
        )
        assert (await failure_of(client.ask(MESSAGES))).requests == 3
        assert len(endpoints.sent) == 3

    run(check())


def test_a_budget_that_is_used_up_sends_nothing_more(judge):
    async def check():
        client, endpoints = judge({"a": [OK]}, budget=Budget(calls_per_run=2))
        await client.ask(MESSAGES)
        await client.ask(MESSAGES)
        failure = await failure_of(client.ask(MESSAGES))
        assert (failure.kind, failure.requests, len(endpoints.sent)) == ("budget", 0, 2)
        assert "calls_per_run" in str(failure)
        assert held(client) == [0, 0, 0]

    run(check())


def test_a_question_waits_for_what_may_come_cheaper_and_is_not_refused_for_it(judge):
    async def check():
        # 12 dollars an answer, 448 at worst: one at a time fits, and two altogether.
        client, endpoints = judge({"a": [OK]}, budget=Budget(usd_per_run=468))
        asked = await asyncio.gather(*(client.ask(MESSAGES) for _ in range(5)), return_exceptions=True)
        kinds = [getattr(one, "kind", "answer") for one in asked]
        assert kinds == ["answer", "answer", "budget", "budget", "budget"]
        assert (len(endpoints.sent), client.budget.spent.in_run.usd) == (2, 24.0)
        assert held(client) == [0, 0, 0]

    run(check())


def test_a_retry_that_the_budget_forbids_says_what_was_spent(judge):
    def parse(text):
        raise JudgeFailure("no", "invalid_json")

    async def check():
        client, _ = judge({"a": ["perhaps"]}, budget=Budget(calls_per_run=1))
        failure = await failure_of(client.ask(MESSAGES, parse))
        assert (failure.kind, failure.requests, failure.usd, failure.text) == ("budget", 1, 12.0, "perhaps")

    run(check())


def test_a_hedge_never_passes_the_budget(judge):
    async def check():
        client, endpoints = judge(
            {"a": [[9, OK]]}, hedging=Hedging(after_s=1), budget=Budget(calls_per_run=1)
        )
        assert (await client.ask(MESSAGES)).requests == len(endpoints.sent) == 1
        assert held(client) == [0, 0, 0]

    run(check())


def test_a_probe_that_the_budget_has_no_room_for_waits_and_does_not_spin(judge):
    async def check():
        plan = {
            "a": [fails("server_error"), [10, OK], OK]
        }  # the second request is in flight when the third may probe
        budget, breaker = Budget(usd_per_run=100), Breaker(failures=1, probe_after_s=1)
        client, _ = judge(plan, budget=budget, breaker=breaker, sampling={"max_tokens": 5})
        first, second = await asyncio.gather(client.ask(MESSAGES), client.ask(MESSAGES))
        assert first.text == second.text == OK
        assert held(client) == [0, 0, 0]

    run(check())


def test_no_mixture_of_faults_passes_the_budget_or_the_limits_or_leaves_anything_held(judge):
    async def check(seed: int):
        rng = random.Random(seed)
        kinds = [
            "connect",
            "timeout",
            "reset",
            "rate_limited",
            "server_error",
            "refusal",
            "too_large",
            "client_error",
        ]

        def outcome():
            kind = rng.choice(kinds)
            usage = None if kind == "connect" else Usage(prompt_tokens=rng.choice([0, 10]))
            wait = rng.choice([None, None, 2.0]) if kind == "rate_limited" else None
            return [rng.uniform(0, 8), rng.choice([OK, OK, OK, fails(kind, usage, retry_after_s=wait)])]

        plan = {name: [outcome() for _ in range(400)] for name in "ab"}
        client, endpoints = judge(
            plan,
            hedging=Hedging(after_s=4),
            limits=Limits(concurrency=7),
            breaker=Breaker(failures=4, probe_after_s=3),
            sampling={"max_tokens": 5},
            budget=Budget(usd_per_run=1500, calls_per_run=250),  # an answer takes 12 dollars, 55 at worst
        )
        spent, calls = [], []

        async def watch():
            while True:
                run_so_far = client.budget.spent.in_run
                spent.append(run_so_far.usd + sum(one.usd for one in client.budget.open))
                calls.append(run_so_far.calls)
                await asyncio.sleep(0.25)

        watcher = asyncio.ensure_future(watch())
        asked = [asyncio.ensure_future(client.ask(MESSAGES)) for _ in range(250)]
        for task in rng.sample(asked, 40):
            asyncio.get_running_loop().call_later(rng.uniform(0, 60), task.cancel)
        results = await asyncio.gather(*asked, return_exceptions=True)
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        assert 1400 < max(spent) <= 1500 + 1e-6
        assert max(calls) <= 250
        assert endpoints.most_in_flight <= 14
        assert endpoints.in_flight == 0
        assert held(client) == [0, 0, 0, 0, 0]
        odd = [one for one in results if isinstance(one, BaseException) and not isinstance(one, JudgeFailure)]
        assert all(isinstance(one, asyncio.CancelledError) for one in odd)
        paid = sum(one.usd for one in results if not isinstance(one, asyncio.CancelledError))
        assert paid <= client.budget.spent.in_run.usd + 1e-6
        assert len(endpoints.sent) == client.counters()["requests"]

    for seed in range(4):
        run(check(seed))


@pytest.mark.parametrize(
    "most", [{}, {"max_tokens": -1}, {"max_tokens": 0}, {"max_tokens": True}, {"max_tokens": 1.5}]
)
def test_a_budget_in_dollars_needs_to_know_how_long_an_answer_may_be(most):
    config = {
        "endpoints": [Endpoint(url="http://a", model="judge")],
        "prices": {"judge": Price(input=1, output=1)},
    }
    with pytest.raises(ConfigError, match="max_tokens"):
        JudgeClient(JudgeConfig(**config, sampling=most, budget=Budget(usd_per_run=1)))
    JudgeClient(JudgeConfig(**config, sampling=most))


def test_one_budget_can_serve_several_clients(judge):
    async def check():
        client, _ = judge({"a": [OK]})
        shared = BudgetKeeper(Budget(calls_per_run=1), {})
        other = JudgeClient(client.config, shared, clock=now)
        await other.ask(MESSAGES)
        assert shared.spent.in_run.calls == 1
        assert client.budget.spent.in_run.calls == 0

    run(check())
