"""What a run may spend on its judge: the price is set aside before a request and corrected after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pv_rl.judge.answer import JudgeFailure, Usage
from pv_rl.judge.config import Budget, Price

__all__ = ["BudgetKeeper", "Reservation", "Spent", "Totals"]

ROUNDING = 1e-9
"""USD that sums of floats may be off by."""


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
    """What was spent; `restore` takes it in a run that goes on."""

    step: int = 0
    in_step: Totals = field(default_factory=Totals)
    in_run: Totals = field(default_factory=Totals)


@dataclass(eq=False, kw_only=True)
class Reservation:
    """The worst that one request can cost, set aside. Give it back by `settle`, once."""

    model: str
    usd: float
    step: int


class BudgetKeeper:
    """Holds a run to its budget. No clock, no waiting: a request that could pass a limit is refused."""

    def __init__(self, budget: Budget, prices: Mapping[str, Price]) -> None:
        self.budget = budget
        self.prices = dict(prices)
        self.spent = Spent()
        self._open: set[Reservation] = set()

    def begin_step(self, step: int) -> None:
        """Limits of a step count from here. What is in flight goes on counting for the step that asked."""
        if step != self.spent.step:
            self.spent = replace(self.spent, step=step, in_step=Totals())

    def restore(self, spent: Spent) -> None:
        """Go on from what an earlier part of the run had spent."""
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

    def reserve(self, model: str, prompt_tokens: int, max_tokens: int) -> Reservation:
        """Set aside the most that a request can cost; neither number may be too low.

        Raises:
            JudgeFailure: of kind `budget`: a limit could be passed, counting what is in flight at its worst.
        """
        worst = self.usd(model, Usage(prompt_tokens=prompt_tokens, completion_tokens=max_tokens))
        budget, step, run = self.budget, self.spent.in_step, self.spent.in_run
        of_step = [one.usd for one in self._open if one.step == self.spent.step]
        for name, limit, now, more in (
            ("calls_per_step", budget.calls_per_step, step.calls, 1),
            ("calls_per_run", budget.calls_per_run, run.calls, 1),
            ("usd_per_step", budget.usd_per_step, step.usd + sum(of_step), worst),
            ("usd_per_run", budget.usd_per_run, run.usd + sum(one.usd for one in self._open), worst),
        ):
            if limit is not None and now + more > limit + ROUNDING:
                raise JudgeFailure(
                    f"the budget's {name} is {limit}; {now:.6g} are spent or set aside and this request "
                    f"could take {more:.6g} more, so it was not sent",
                    "budget",
                )
        reservation = Reservation(model=model, usd=worst, step=self.spent.step)
        self._open.add(reservation)
        self._add(reservation, calls=1)
        return reservation

    def settle(self, reservation: Reservation, usage: Usage | None) -> float:
        """Book what a request took, and return its price in USD. None: it was never sent.

        Where nobody knows whether the server bills it, as after a timeout, give the estimated tokens of the prompt.
        """
        self._open.remove(reservation)
        if usage is None:
            self._add(reservation, calls=-1)
            return 0.0
        usd = self.usd(reservation.model, usage)
        self._add(reservation, usd=usd, tokens=usage.prompt_tokens + usage.completion_tokens)
        return usd

    def _add(self, reservation: Reservation, usd: float = 0.0, calls: int = 0, tokens: int = 0) -> None:
        spent = self.spent
        same = reservation.step == spent.step
        in_step = spent.in_step.plus(usd, calls, tokens) if same else spent.in_step
        self.spent = replace(spent, in_step=in_step, in_run=spent.in_run.plus(usd, calls, tokens))
