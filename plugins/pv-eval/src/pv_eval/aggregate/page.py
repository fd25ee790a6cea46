"""Page of decision rules: the best one at a budget, and the numbers of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pv_eval.aggregate.budget import Choice, best_at, budget_steps
from pv_eval.aggregate.members import Member, price
from pv_eval.aggregate.options import Option, Result, all_options, deciding, estimates
from pv_eval.intervals import Estimate, Intervals
from pv_eval.report.names import in_title
from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Table
from pv_judge.pages.text import estimate, number, percent, plural, points

__all__ = ["Aggregation", "aggregate_votes", "blocks", "document"]

WORDS = {
    "usd": "dollars",
    "tokens": "tokens of prompt and answer",
    "answer tokens": "tokens of the answer",
    "votes": "votes",
}
NAMED = {"balanced_accuracy": "balanced accuracy", "accuracy": "accuracy"}
FEW = (1, 2, 4, 8, 16, 32, 64, 128)
MOST = 200
"""Lines of a table that has every option."""
TINY = 1e-9
DEFINITIONS = (
    "majority: the verdict of most votes, a tie is a coin. pessimistic: one rejection is a veto. at least m: accepts "
    "if m votes accept. Exactly, over all subsets of the votes that were sampled.",
    "weighted: each vote counts by the log odds of its verifier's balanced accuracy on other questions (five folds). "
    "logit: the sum of the logits of the verdicts.",
    "Of two verifiers there are also unequal numbers of votes, of three and four the same number of each.",
    "The best of many options on the same questions looks better than it is. The number on other questions is of "
    "options that were chosen on one half of the questions and measured on the other, both ways, over 20 cuts.",
)


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """What was measured."""

    members: Sequence[Member]
    unit: str
    missing: str
    decides: str
    """The number that options are compared by."""
    results: Sequence[Result]
    """The cheapest first."""
    choices: Sequence[Choice]
    how: Intervals


def aggregate_votes(
    members: Sequence[Member],
    how: Intervals,
    *,
    missing: str = "abstain",
    unit: str = "",
    budgets: Sequence[float] = (),
) -> Aggregation:
    """Measure every option.

    Args:
        members: on the same pairs, see `on_common_pairs`.
        how: of the intervals, and the seed of folds and cuts.
        missing: see `all_options`.
        unit: of costs, see `price`.
        budgets: a proof, in the unit; by default the cost of the cheapest option, doubled until all can be paid.

    Raises:
        ConfigError: an option is unknown, or a cost is.
    """
    unit, costs = price(members, unit)
    options = all_options(members, costs, missing, how.seed)
    first = next(one for one in options if one.verifiers == (members[0].name,) and one.each == (1,))
    return Aggregation(
        members=members,
        unit=unit,
        missing=missing,
        decides=deciding(first.sums),
        results=estimates(options, first, how),
        choices=best_at(options, budgets or budget_steps(options), how),
        how=how,
    )


def blocks(found: Aggregation, *, short: bool = False) -> Iterator[Block]:
    """All of the page; the first block is the title.

    Args:
        found: what was measured.
        short: leave out the rules `at least m`, and of ensembles all but the least and the most votes. Of more than 200
            options ensembles are left out that an option of the same cost or less beats.
    """
    counts = found.members[0].counts
    yield Heading("Several votes of " + in_title(one.name for one in found.members), level=1)
    treated = "does not vote" if found.missing == "abstain" else "is a rejection"
    yield Paragraph(
        f"On {plural(len(counts.pairs), 'pair')} of {plural(len(counts.questions), 'question')} that all voted on. "
        f"A vote without a verdict {treated}; no verdict at all is wrong. Costs are {WORDS[found.unit]} a proof. "
        f"Intervals of {100 * found.how.level:g} %, over questions."
    )
    yield Heading("The best at a budget")
    yield _budget_table(found)
    yield Heading("Decision rules")
    shown = _shown(found, short)
    yield Paragraph(
        f"The gain is in points of {NAMED[found.decides]} over one vote of {found.members[0].name}; the cost of a "
        f"point is what is paid beyond that vote for each of them. The table has {len(shown)} of "
        f"{plural(len(found.results), 'option')}; aggregate.json, which --out writes, has all."
    )
    yield _rules_table(found, shown)
    yield Items(
        [
            *(f"{one.name}: a verdict takes {one.cost or 'an unknown cost'}." for one in found.members),
            *DEFINITIONS,
        ]
    )


def _budget_table(found: Aggregation) -> Table:
    measure = NAMED[found.decides]
    columns: list[Column[Choice]] = [
        Column("budget", lambda one: number(one.budget), f"{found.unit} a proof"),
        Column(
            "best",
            lambda one: one.best.name if one.best else "none is as cheap",
            left=True,
            wrap=True,
        ),
        Column("cost", lambda one: number(one.best.cost) if one.best else "", found.unit),
        Column(measure, lambda one: _share(one.optimistic), "on the same questions, %"),
        Column(measure, lambda one: _share(one.honest), "on other questions, %"),
        Column("same choice", lambda one: percent(one.stable), "on random halves, %"),
    ]
    return Table.of(columns, found.choices)


def _rules_table(found: Aggregation, shown: Sequence[Result]) -> Table:
    columns: list[Column[Result]] = [
        Column("verifiers", lambda one: one.option.who, left=True),
        Column("votes", lambda one: one.option.votes),
        Column("rule", lambda one: one.option.rule, left=True),
        Column("cost", lambda one: number(one.option.cost), found.unit),
        Column("balanced", lambda one: _share(one.numbers["balanced_accuracy"]), "accuracy, %"),
        Column("accuracy", lambda one: _share(one.numbers["accuracy"]), "%"),
        Column("right proofs", lambda one: _share(one.numbers["accuracy_right"]), "accuracy, %"),
        Column("wrong proofs", lambda one: _share(one.numbers["accuracy_wrong"]), "accuracy, %"),
        Column("no verdict", lambda one: percent(one.numbers["missing"].value), "%"),
        Column("gain", lambda one: estimate(one.gain.value, one.gain.low, one.gain.high, points), "points"),
        Column("cost of a point", lambda one: number(one.cost_of_a_point), found.unit),
    ]
    return Table.of(columns, shown, repeated=3)


def _shown(found: Aggregation, short: bool) -> list[Result]:
    """Results by verifiers, then by votes. Of very many, ensembles are left out that a cheaper option beats."""
    most: dict[tuple[str, ...], tuple[int, ...]] = {}
    for one in found.results:
        own = one.option
        most[own.verifiers] = max(most.get(own.verifiers, ()), own.each)

    def kept(option: Option) -> bool:
        last = option.each == most[option.verifiers]
        even = len(set(option.each)) == 1 and option.each[0] in FEW
        if option.rule.startswith("at least"):
            return not short and (last or (even and option.rule == "at least 1"))
        return last or (even and (not short or len(option.each) == 1 or option.each[0] == 1))

    shown = [one for one in found.results if kept(one.option)]
    if len(shown) > MOST:
        best = _unbeaten(found)
        shown = [one for one in shown if len(one.option.verifiers) == 1] + [
            one for one in best if len(one.option.verifiers) > 1
        ]
    return sorted(shown, key=lambda one: (len(one.option.verifiers), one.option.verifiers, one.option.each))


def _unbeaten(found: Aggregation) -> list[Result]:
    """Those that are better than every option of the same cost or less."""
    best: list[Result] = []
    for one in sorted(found.results, key=lambda one: (one.option.cost, -one.numbers[found.decides].value)):
        if not best or one.numbers[found.decides].value > best[-1].numbers[found.decides].value + TINY:
            best.append(one)
    return best


def _share(one: Estimate) -> str:
    return estimate(one.value, one.low, one.high, percent)


def document(found: Aggregation) -> dict[str, Any]:
    """All options as plain values, see `pv_judge.pages.writing.plain_values`."""
    return {
        "verifiers": [{"name": one.name, "cost": one.cost} for one in found.members],
        "pairs": len(found.members[0].counts.pairs),
        "missing": found.missing,
        "unit": found.unit,
        "intervals": found.how,
        "budgets": [
            {
                "budget": one.budget,
                "best": one.best.name if one.best else None,
                "cost": one.best.cost if one.best else None,
                "same_questions": one.optimistic,
                "other_questions": one.honest,
                "chosen": one.stable,
            }
            for one in found.choices
        ],
        "options": [
            {
                "verifiers": one.option.verifiers,
                "votes": one.option.each,
                "rule": one.option.rule,
                "cost": one.option.cost,
                **one.numbers,
                "gain": one.gain,
                "cost_of_a_point": one.cost_of_a_point,
            }
            for one in found.results
        ],
    }
