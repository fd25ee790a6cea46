"""A hard budget: what could pass it is not sent."""

from __future__ import annotations

import pytest

from pv_judge.answer import JudgeFailure, Usage
from pv_judge.budget import BudgetKeeper, Spent, Totals
from pv_judge.config import Budget, Price

PRICES = {"judge": Price(input=2.0, output=10.0, cached_input=0.5)}  # USD per million tokens


def keeper(**limits: float) -> BudgetKeeper:
    return BudgetKeeper(Budget(**limits), PRICES)


def test_the_price_is_that_of_prompt_cached_prompt_and_answer():
    usage = Usage(prompt_tokens=1000, cached_tokens=400, completion_tokens=50)
    # 600 x 2 + 400 x 0.5 + 50 x 10 = 1200 + 200 + 500 = 1900 millionths
    assert keeper().usd("judge", usage) == pytest.approx(0.0019)


def test_cached_tokens_cost_as_much_as_others_where_no_price_is_given():
    prices = {"judge": Price(input=2.0, output=10.0)}
    assert BudgetKeeper(Budget(), prices).usd("judge", Usage(prompt_tokens=100, cached_tokens=100)) == 0.0002


def test_more_cached_tokens_than_tokens_do_not_make_the_price_negative():
    assert keeper().usd("judge", Usage(prompt_tokens=100, cached_tokens=900)) == pytest.approx(0.00005)


def test_a_model_without_a_price_costs_nothing():
    assert keeper().usd("other", Usage(prompt_tokens=10**6)) == 0.0


@pytest.mark.parametrize("limit", ["usd_per_run", "usd_per_step"])
def test_what_is_in_flight_counts_at_its_worst(limit):
    budget = keeper(**{limit: 0.01})
    budget.reserve("judge", 1000, 300)  # 0.002 + 0.003 = 0.005
    second = budget.reserve("judge", 1000, 300)
    assert budget.reserve("judge", 1, 0) is None  # it may fit once the others have come cheaper
    told = []
    budget.waiting.append(lambda: told.append(budget.spent.in_run.usd))
    budget.settle(second, Usage(prompt_tokens=1000))
    assert told == [pytest.approx(0.002)]
    budget.settle(budget.reserve("judge", 1, 1), Usage(prompt_tokens=3000))
    with pytest.raises(JudgeFailure, match=f"{limit} is 0[.]01") as failure:
        budget.reserve("judge", 1500, 0)
    assert failure.value.kind == "budget"


def test_a_prompt_whose_cached_tokens_cost_more_is_set_aside_at_their_price():
    prices = {"judge": Price(input=1.0, cached_input=3.0, output=0.0)}
    assert BudgetKeeper(Budget(usd_per_run=1), prices).reserve("judge", 1000, 0).usd == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("said", "believed", "capped"),
    [
        (Usage(prompt_tokens=1000, completion_tokens=300), (1000, 300, 0), 0),
        (Usage(prompt_tokens=1001, completion_tokens=20, cached_tokens=1001), (1000, 20, 1000), 1),
        (Usage(prompt_tokens=5, completion_tokens=10**12), (5, 300, 0), 1),
    ],
)
def test_a_server_is_believed_no_more_tokens_than_its_request_can_take(said, believed, capped):
    budget = keeper(usd_per_run=0.005)
    usage = budget.bounded(budget.reserve("judge", 1000, 300), said)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == believed
    assert budget.capped == capped


def test_without_max_tokens_an_answer_is_believed_a_million_tokens():
    budget = keeper(calls_per_run=5)
    usage = budget.bounded(budget.reserve("judge", 1000, 0), Usage(completion_tokens=10**9))
    assert usage.completion_tokens == 1_000_000


@pytest.mark.parametrize("limit", ["usd_per_run", "usd_per_step", "calls_per_run", "calls_per_step"])
def test_a_request_is_booked_at_its_worst_before_it_is_let_through(limit):
    budget = keeper(**{limit: 2})
    booked: list[Spent] = []
    budget.book = lambda: booked.append(budget.at_most)
    budget.begin_step(3)
    first = budget.reserve("judge", 1000, 300)  # 0.005
    assert booked[-1].in_run == booked[-1].in_step == Totals(usd=0.005, calls=1, tokens=1300)
    budget.begin_step(4)
    budget.settle(first, Usage(prompt_tokens=500))  # 0.001
    budget.reserve("judge", 1000, 300)
    assert booked[-1].in_run == Totals(usd=pytest.approx(0.006), calls=2, tokens=1800)
    assert booked[-1].in_step == Totals(usd=0.005, calls=1, tokens=1300)


def test_a_request_that_cannot_be_booked_is_not_let_through():
    budget = keeper(calls_per_run=1)

    def full():
        raise OSError(28, "No space left on device")

    budget.book = full
    with pytest.raises(JudgeFailure, match=r"No space left.*Free disk space") as failure:
        budget.reserve("judge", 10, 10)
    assert failure.value.kind == "budget"
    assert (budget.at_most, budget.open) == (Spent(), set())
    budget.book = lambda: None
    assert budget.reserve("judge", 10, 10) is not None


def test_a_run_without_limits_books_nothing():
    budget = keeper()
    budget.book = lambda: pytest.fail("nothing hangs on it")
    assert budget.reserve("judge", 10, 10) is not None


def test_what_a_request_did_not_take_is_free_again():
    budget = keeper(usd_per_run=0.006)
    first = budget.reserve("judge", 1000, 300)  # 0.005 set aside
    assert budget.settle(first, Usage(prompt_tokens=400, completion_tokens=20)) == pytest.approx(0.001)
    assert budget.reserve("judge", 1000, 300) is not None  # 0.001 + 0.005
    assert budget.reserve("judge", 1, 0) is None


def test_a_limit_can_be_used_up_to_the_last_cent():
    budget = keeper(usd_per_run=0.3)
    for _ in range(3):  # 0.1 + 0.1 + 0.1 is more than 0.3 in floats
        budget.settle(budget.reserve("judge", 50_000, 0), Usage(prompt_tokens=50_000))
    assert budget.spent.in_run == Totals(usd=pytest.approx(0.3), calls=3, tokens=150_000)
    with pytest.raises(JudgeFailure):
        budget.reserve("judge", 50_000, 0)


def test_a_budget_of_nothing_sends_nothing():
    with pytest.raises(JudgeFailure, match="calls_per_run"):
        keeper(calls_per_run=0).reserve("judge", 1, 1)


def test_calls_count_from_when_they_are_sent():
    budget = keeper(calls_per_step=2)
    first = budget.reserve("judge", 10, 10)
    budget.reserve("judge", 10, 10)
    with pytest.raises(JudgeFailure, match="calls_per_step is 2; 2 are spent"):
        budget.reserve("judge", 10, 10)
    budget.settle(first, Usage())  # a 429: not billed, but sent
    with pytest.raises(JudgeFailure):
        budget.reserve("judge", 10, 10)


def test_a_request_that_was_never_sent_gives_its_call_back():
    budget = keeper(calls_per_run=1)
    assert budget.settle(budget.reserve("judge", 10, 10), None) == 0.0
    assert budget.spent == Spent()
    budget.reserve("judge", 10, 10)


def test_a_new_step_has_its_own_budget_and_the_run_goes_on():
    budget = keeper(calls_per_step=1, calls_per_run=2)
    budget.begin_step(1)
    budget.settle(budget.reserve("judge", 100, 0), Usage(prompt_tokens=100))
    budget.begin_step(1)  # said twice, counted once
    with pytest.raises(JudgeFailure, match="calls_per_step"):
        budget.reserve("judge", 100, 0)
    budget.begin_step(2)
    budget.settle(budget.reserve("judge", 100, 0), Usage(prompt_tokens=100))
    budget.begin_step(3)
    with pytest.raises(JudgeFailure, match="calls_per_run"):
        budget.reserve("judge", 100, 0)


def test_a_request_counts_for_the_step_that_asked():
    budget = keeper(usd_per_step=0.005)
    budget.begin_step(1)
    late = budget.reserve("judge", 1000, 300)
    budget.begin_step(2)
    other = budget.reserve("judge", 1000, 300)  # what step 1 holds is not taken from step 2
    budget.settle(late, Usage(prompt_tokens=1000))
    budget.settle(other, Usage(prompt_tokens=500))
    assert budget.spent.in_step == Totals(usd=pytest.approx(0.001), calls=1, tokens=500)
    assert budget.spent.in_run == Totals(usd=pytest.approx(0.003), calls=2, tokens=1500)


def test_a_run_that_is_resumed_goes_on_from_what_was_spent():
    budget = keeper(usd_per_run=0.01)
    budget.restore(Spent(step=7, in_run=Totals(usd=0.009, calls=40, tokens=9000)))
    with pytest.raises(JudgeFailure):
        budget.reserve("judge", 1000, 0)
    budget.settle(budget.reserve("judge", 500, 0), Usage(prompt_tokens=500))
    assert budget.spent.in_run == Totals(usd=pytest.approx(0.01), calls=41, tokens=9500)
