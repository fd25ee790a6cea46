"""Budget of a judge: reserves the highest price of a request before it is sent, and settles the actual one after it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pv_judge.answer import JudgeFailure, Usage
from pv_judge.config import Budget, Price
from pv_rl.errors import SetupError

__all__ = ["BudgetKeeper", "Reservation", "Spent", "Totals"]

ROUNDING = 1e-9
"""USD that sums of floats may be off by."""
UNIT = 1e-12
"""USD."""
LONGEST = 1_000_000
"""Most tokens of an answer to a request without `max_tokens`."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over requests."""

    usd: float = 0.0
    """Of requests that have ended."""
    calls: int = 0
    """Requests, those in flight included."""
    tokens: int = 0
    """Of prompt and answer, of requests that have ended."""

    def plus(self, usd: float = 0.0, calls: int = 0, tokens: int = 0) -> Totals:
        """The sums with one more request in them, or one fewer."""
        return Totals(usd=self.usd + usd, calls=self.calls + calls, tokens=self.tokens + tokens)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run has spent; `BudgetKeeper.restore` takes it when the run is resumed."""

    step: int = 0
    in_step: Totals = field(default_factory=Totals)
    in_run: Totals = field(default_factory=Totals)


@dataclass(eq=False, kw_only=True)
class Reservation:
    """The highest cost of one request, reserved until `BudgetKeeper.settle`, which is called once."""

    model: str
    most: Usage
    """The largest counts that a server can bill. No completion tokens: the request sets no `max_tokens`."""
    usd: float
    """The price of `most`."""
    tokens: int
    """The sum of `most`."""
    step: int


class BudgetKeeper:
    """Keeps a run within its budget: refuses each request that could exceed a limit. It never waits."""

    def __init__(self, budget: Budget, prices: Mapping[str, Price]) -> None:
        self.budget = budget
        self.prices = dict(prices)
        self.spent = Spent()
        self.waiting: list[Callable[[], None]] = []
        """Called when a request that got no reservation may get one."""
        self.book: Callable[[], object] = lambda: None
        """Called before a request of a limited budget is sent. It writes `at_most` to disk, or raises OSError or
        SetupError."""
        self.capped = 0
        """Requests for which the server counted more tokens than they can take."""
        self.open: set[Reservation] = set()
        """Reservations of requests in flight."""
        self._held_usd: Counter[int] = Counter()
        """Of the open requests, by step, in whole `UNIT`s: a sum of floats would drift."""
        self._held_tokens: Counter[int] = Counter()

    @property
    def at_most(self) -> Spent:
        """What is spent if each request in flight has its highest cost."""
        of_step, of_run = self._in_flight()
        spent = self.spent
        return Spent(
            step=spent.step,
            in_step=spent.in_step.plus(of_step.usd, 0, of_step.tokens),
            in_run=spent.in_run.plus(of_run.usd, 0, of_run.tokens),
        )

    def begin_step(self, step: int) -> None:
        """Start a step, whose limits count from 0. Requests in flight count for the step that sent them."""
        if step != self.spent.step:
            self.spent = replace(self.spent, step=step, in_step=Totals())
            self._tell()

    def restore(self, spent: Spent) -> None:
        """Continue from what an earlier part of the run has spent."""
        self.spent = spent

    def usd(self, model: str, usage: Usage) -> float:
        """The price in USD; 0 for a model without one."""
        price = self.prices.get(model)
        if price is None:
            return 0.0
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_price = price.input if price.cached_input is None else price.cached_input
        millionths = (usage.prompt_tokens - cached) * price.input
        millionths += cached * cached_price + usage.completion_tokens * price.output
        return millionths / 1e6

    def reserve(self, model: str, prompt_tokens: int, max_tokens: int) -> Reservation | None:
        """Reserve the highest cost of a request; both numbers are upper bounds.

        Returns:
            None if there may be room once requests in flight have cost less: try again after a call of `waiting`.

        Raises:
            JudgeFailure: of kind `budget`: the request could exceed a limit even if all in flight cost nothing, or
                `book` failed.
        """
        most = Usage(prompt_tokens=prompt_tokens, completion_tokens=max_tokens)
        worst = max(self.usd(model, most), self.usd(model, replace(most, cached_tokens=prompt_tokens)))
        budget, step, run = self.budget, self.spent.in_step, self.spent.in_run
        of_step, of_run = self._in_flight() if budget.in_dollars else (Totals(), Totals())
        wait = False
        for name, limit, now, in_flight, more in (
            ("calls_per_step", budget.calls_per_step, step.calls, 0, 1),
            ("calls_per_run", budget.calls_per_run, run.calls, 0, 1),
            ("usd_per_step", budget.usd_per_step, step.usd, of_step.usd, worst),
            ("usd_per_run", budget.usd_per_run, run.usd, of_run.usd, worst),
        ):
            if limit is not None and now + more > limit + ROUNDING:
                raise JudgeFailure(
                    f"the budget's {name} is {limit}; {now:.6g} are spent and this request could take {more:.6g} more, "
                    "so it was not sent",
                    "budget",
                )
            wait = wait or (limit is not None and now + in_flight + more > limit + ROUNDING)
        if wait:
            return None
        tokens = prompt_tokens + max_tokens
        reservation = Reservation(model=model, most=most, usd=worst, tokens=tokens, step=self.spent.step)
        self._hold(reservation, 1)
        self._add(reservation, calls=1)
        if budget.limited:
            try:
                self.book()
            except (OSError, SetupError) as error:
                self._hold(reservation, -1)
                self._add(reservation, calls=-1)
                raise JudgeFailure(
                    f"the request was not sent, because its price could not be written to the spend file ({error}), "
                    "and after a restart the run would exceed its budget. Free disk space, or make the file writable",
                    "budget",
                ) from error
        return reservation

    def bounded(self, reservation: Reservation, usage: Usage) -> Usage:
        """A server's counts, at most what the request can take; `capped` counts the requests with larger ones."""
        prompt, answer = reservation.most.prompt_tokens, reservation.most.completion_tokens or LONGEST
        if usage.prompt_tokens <= prompt and usage.completion_tokens <= answer:
            return usage
        self.capped += 1
        return Usage(
            prompt_tokens=min(prompt, usage.prompt_tokens),
            completion_tokens=min(answer, usage.completion_tokens),
            cached_tokens=min(prompt, usage.cached_tokens),
        )

    def settle(self, reservation: Reservation, usage: Usage | None, *, unsettled: bool = False) -> float:
        """Book the usage of a request, and return its price in USD.

        Args:
            reservation: of the request.
            usage: its tokens; None: it was never sent.
            unsettled: the server's bill is unknown, as after a timeout: the highest cost is booked.
        """
        self._hold(reservation, -1)
        usd = 0.0 if usage is None else reservation.usd if unsettled else self.usd(reservation.model, usage)
        if usage is None:
            self._add(reservation, calls=-1)
        else:
            self._add(reservation, usd=usd, tokens=usage.prompt_tokens + usage.completion_tokens)
        self._tell()
        return usd

    def _in_flight(self) -> tuple[Totals, Totals]:
        """The highest cost of the open requests: of the step, and of all."""
        usd, tokens, step = self._held_usd, self._held_tokens, self.spent.step
        of_step = Totals(usd=usd[step] * UNIT, tokens=tokens[step])
        return of_step, Totals(usd=sum(usd.values()) * UNIT, tokens=sum(tokens.values()))

    def _hold(self, reservation: Reservation, sign: int) -> None:
        (self.open.add if sign > 0 else self.open.remove)(reservation)
        step = reservation.step
        self._held_usd[step] += sign * math.ceil(reservation.usd / UNIT)
        self._held_tokens[step] += sign * reservation.tokens
        if not self._held_tokens[step]:
            del self._held_tokens[step], self._held_usd[step]

    def _tell(self) -> None:
        for wake in self.waiting:
            wake()

    def _add(self, reservation: Reservation, usd: float = 0.0, calls: int = 0, tokens: int = 0) -> None:
        spent = self.spent
        same = reservation.step == spent.step
        in_step = spent.in_step.plus(usd, calls, tokens) if same else spent.in_step
        self.spent = replace(spent, in_step=in_step, in_run=spent.in_run.plus(usd, calls, tokens))
