"""Several votes: decision rules against every subset, weights from other questions, and the choice at a budget."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from eval_cases import run
from evaluate_cases import SAID, counted, drawn, made

from pv_eval import Intervals, RunInfo, Vote, check, evaluate, write_run
from pv_eval.aggregate import page
from pv_eval.aggregate.budget import best_at
from pv_eval.aggregate.members import Member, on_common_pairs, price, read_members
from pv_eval.aggregate.options import all_options, estimates
from pv_eval.aggregate.page import aggregate_votes, blocks
from pv_eval.aggregate.rules import count_missing_as_rejections, decide, joint_table, rules_of
from pv_eval.aggregate.weighted import by_logit, by_weight, fold_of, weights_of
from pv_eval.costs import Cost, cost_of
from pv_eval.counts import VoteCounts, count_votes
from pv_eval.metrics import class_sums
from pv_judge.pages.blocks import Table
from pv_judge.pages.markdown import to_markdown
from pv_rl.errors import ConfigError

QUICK = Intervals(flips=100)
TRUE, FALSE, NONE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
COIN = (0.5, 0.5, 0.0)


def by_hand(rule: str, letters: str) -> tuple[float, float, float]:
    """How a rule decides on the votes of one subset."""
    yes, no = letters.count("T"), letters.count("F")
    if not yes + no:
        return NONE
    if rule == "majority":
        return COIN if yes == no else TRUE if yes > no else FALSE
    if rule == "pessimistic":
        return FALSE if no else TRUE
    return TRUE if yes >= int(rule.removeprefix("at least ")) else FALSE


def over_subsets(rule: str, votes: list[str], each: list[int]) -> list[float]:
    subsets = product(*(combinations(letters, k) for letters, k in zip(votes, each, strict=True)))
    decided = [by_hand(rule, "".join("".join(part) for part in chosen)) for chosen in subsets]
    return [mean(column) for column in zip(*decided, strict=True)]


@pytest.mark.parametrize(
    ("votes", "each"),
    [
        (["TTF"], [2]),
        (["TTFFN"], [3]),
        (["TNNFFT"], [4]),
        (["NNN"], [2]),
        (["TTFN", "FFT"], [2, 2]),
        (["TNF", "TTN", "FFFT"], [1, 2, 3]),
    ],
)
def test_each_rule_equals_the_mean_over_all_subsets(votes, each):
    counts = [counted(("a", True, "q", letters)) for letters in votes]
    found = decide(joint_table(counts, each))
    assert {"majority", "pessimistic", "at least 1", f"at least {sum(each)}"} <= found.keys()
    for rule, shares in found.items():
        expected = over_subsets(rule, votes, each)
        assert [float(share[0]) for share in shares] == pytest.approx(expected), rule


def test_the_example_of_the_docstring():
    found = decide(joint_table([counted(("a", True, "q", "TTF"))], [2]))
    assert {rule: float(shares[0][0]) for rule, shares in found.items()} == pytest.approx(
        {"majority": 2 / 3, "pessimistic": 1 / 3, "at least 1": 1, "at least 2": 1 / 3}
    )


def test_a_missing_verdict_abstains_or_rejects():
    counts = counted(("a", True, "q", "TTN"))
    shares = {rule: float(one[0][0]) for rule, one in decide(joint_table([counts], [3])).items()}
    assert (shares["majority"], shares["pessimistic"], shares["at least 3"]) == (1, 1, 0)
    strict = count_missing_as_rejections(counts)
    shares = {rule: float(one[0][0]) for rule, one in decide(joint_table([strict], [3])).items()}
    assert (shares["majority"], shares["pessimistic"], shares["at least 3"]) == (1, 0, 0)
    assert over_subsets("pessimistic", ["TTF"], [3])[0] == shares["pessimistic"]


def test_a_single_vote_has_the_numbers_of_the_evaluation_and_two_rules_agree_where_they_must():
    pairs, votes = drawn(12, 3, 5, seed=4)
    checked = check(pairs, votes)
    counts = count_votes(checked)
    single = decide(joint_table([counts], [1]))
    assert list(single) == ["single vote"]
    expected = evaluate(checked, QUICK)
    assert class_sums(counts, single["single vote"]).table == pytest.approx(class_sums(counts).table)
    member = Member(name="v", counts=counts, cost=Cost())
    options = all_options([member], [1.0])
    first = estimates(options[:1], options[0], QUICK)[0]
    for name, number in first.numbers.items():
        assert (number.value, number.low) == pytest.approx(
            (expected.metrics[name].value, expected.metrics[name].low), nan_ok=True
        )
    by_name = {(one.option.each, one.option.rule): one for one in estimates(options, options[0], QUICK)}
    for k, by_ties in expected.majority.items():
        rule = "majority" if k > 1 else "single vote"
        assert by_name[(k,), rule].numbers["accuracy"].value == pytest.approx(by_ties["uniform"].value)
    assert len(rules_of(16)) == 2 + 5  # quarters: 1, 4, 8, 12, 16


def weighted_by_hand(votes: list[str], each: list[int], weights: list[float]) -> list[float]:
    decided = []
    for chosen in product(*(combinations(letters, k) for letters, k in zip(votes, each, strict=True))):
        margin = [part.count("T") - part.count("F") for part in chosen]
        total = sum(w * d for w, d in zip(weights, margin, strict=True))
        silent = not any(set(part) & set("TF") for part in chosen)
        decided.append(NONE if silent else COIN if abs(total) < 1e-9 else TRUE if total > 0 else FALSE)
    return [mean(column) for column in zip(*decided, strict=True)]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.2, 0.41), (1.0, 0.0), (0.5, -0.3), (0.1 + 0.2, 0.3)])
def test_weighted_votes_equal_every_subset(weights):
    votes, each = ["TTFN", "FFTTN"], [2, 3]
    counts = [counted(("a", True, "q", letters)) for letters in votes]
    found = by_weight(counts, each, np.array([0]), np.array([weights]))
    assert [float(one[0]) for one in found] == pytest.approx(weighted_by_hand(votes, each, list(weights)))


def test_equal_weights_are_the_majority():
    counts = [count_votes(check(*drawn(8, 2, 4, seed=seed))) for seed in (1, 2, 3)]
    fold = np.zeros(8, dtype=int)
    found = by_weight(counts, [2, 2, 2], fold, np.full((1, 3), 0.7))
    for one, other in zip(found, decide(joint_table(counts, [2, 2, 2]))["majority"], strict=True):
        assert one == pytest.approx(other)


def test_weights_are_log_odds_of_the_balanced_accuracy_on_other_questions():
    # 9 questions with a right and a wrong proof each, all judged well; the tenth is judged wrongly
    rows = [
        (f"{q}-{label}", label, f"q{q}", "TF"[not label] * 2) for q in range(9) for label in (True, False)
    ]
    rows += [("9-True", True, "q9", "FF"), ("9-False", False, "q9", "TT")]
    counts = counted(*rows)
    fold = np.array([0] * 9 + [1])
    found = weights_of([counts], fold)
    # for the tenth: (9 + 1) / (9 + 2) in both classes; for the others, from the tenth alone: (0 + 1) / (1 + 2)
    assert found[:, 0] == pytest.approx([math.log(1 / 2), math.log(10)])
    folds = fold_of(12, 0)
    assert sorted(np.bincount(folds).tolist()) == [2, 2, 2, 3, 3]


def with_logits(letters: str, logits: list[float | None]) -> VoteCounts:
    pairs, _ = made(("a", True, "q", ""))
    votes = [
        Vote(pair_id="a", question_id="q", sample=n, verdict=SAID[letter], logit=logit)
        for n, (letter, logit) in enumerate(zip(letters, logits, strict=True))
    ]
    return count_votes(check(pairs, votes))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_logits_add_up_over_every_subset(k):
    logits = [2.0, -1.0, -1.0, None, 0.5]
    decided = []
    for chosen in combinations(logits, k):
        known = [one for one in chosen if one is not None]
        total = sum(known)
        decided.append(NONE if not known else COIN if total == 0 else TRUE if total > 0 else FALSE)
    found = by_logit(with_logits("TFFNT", logits), k)
    expected = [mean(column) for column in zip(*decided, strict=True)]
    assert [float(one[0]) for one in found] == pytest.approx(expected)


def test_the_largest_logits_do_not_overflow():
    counts = with_logits("TTFF", [1e308, 1e308, -1e308, -1e308])
    assert [float(one[0]) for one in by_logit(counts, 2)] == pytest.approx([0.5, 0.5, 0])  # 1, 4 coins, 1


def test_many_subsets_are_drawn_for_logits():
    rng = random.Random(1)
    logits: list[float | None] = [rng.gauss(0.3, 1) for _ in range(24)]
    counts = with_logits("".join("T" if one and one > 0 else "F" for one in logits), logits)
    drawn_share = float(by_logit(counts, 12)[0][0])
    exact = mean(sum(rng.sample([one or 0 for one in logits], 12)) > 0 for _ in range(20_000))
    assert abs(drawn_share - exact) < 4 * math.sqrt(exact * (1 - exact) / 2000) + 0.01


def members(*verifiers: tuple[str, float, int], samples: int = 4, questions: int = 20) -> list[Member]:
    """Verifiers on the same pairs, by name, cost of a vote and seed; the larger the cost, the better."""
    found = []
    for name, usd, seed in verifiers:
        pairs, votes = drawn(questions, 2, samples, seed=seed, skills=(0.5 + usd / 4, 0.6 + usd / 4))
        counts = count_votes(check(pairs, votes))
        found.append(Member(name=name, counts=counts, cost=Cost(usd=usd)))
    return found


def test_costs_are_votes_times_the_price_of_each_verifier():
    unit, costs = price(both := members(("A", 0.5, 1), ("B", 1.0, 2)))
    assert (unit, costs) == ("usd", [0.5, 1.0])
    options = all_options(both, costs)
    assert [one.cost for one in options] == sorted(one.cost for one in options)
    by_name = {one.name: one.cost for one in options}
    assert by_name["A, 1 vote"] == 0.5
    assert by_name["A, 4 votes, pessimistic"] == 2.0
    assert by_name["A + B, 4 + 1 votes, weighted"] == 3.0
    assert by_name["A + B, 3 + 3 votes, at least 2"] == 4.5


def test_the_cost_of_a_point_is_what_is_paid_beyond_the_first_vote():
    counts = counted(("a", True, "q", "TTF"), ("b", False, "r", "FFF"))
    options = all_options([Member(name="v", counts=counts, cost=Cost())], [2.0])
    found = {one.option.name: one for one in estimates(options, options[0], QUICK)}
    single, all_three = found["v, 1 vote"], found["v, 3 votes, majority"]
    # balanced: (2/3 + 1) / 2, then 1: 16.7 points for two further votes of 2
    assert single.numbers["balanced_accuracy"].value == pytest.approx(5 / 6)
    assert all_three.gain.value == pytest.approx(1 / 6)
    assert all_three.cost_of_a_point == pytest.approx(4 / (100 / 6))
    assert math.isnan(single.cost_of_a_point)
    assert math.isnan(found["v, 3 votes, pessimistic"].cost_of_a_point)  # it loses


def test_a_choice_among_noise_looks_good_only_on_the_questions_that_it_was_made_on():
    rng = random.Random(5)
    noise = [
        Member(
            name=name,
            counts=counted(
                *(
                    (f"p{n}", n % 2 == 0, f"q{n // 2}", "".join(rng.choice("TF") for _ in range(4)))
                    for n in range(60)
                )
            ),
            cost=Cost(),
        )
        for name in "ABC"
    ]
    options = all_options(noise, [1.0] * 3)
    (choice,) = best_at(options, [100], QUICK)
    assert choice.optimistic.value > 0.55
    assert choice.honest.value < 0.51
    assert choice.stable < 0.8


def test_at_a_budget_the_best_that_can_be_paid_is_chosen():
    both = members(("A", 0.1, 1), ("B", 1.0, 2), questions=40)
    options = all_options(both, [0.1, 1.0])
    poor, rich, broke = best_at(options, [0.1, 4.0, 0.05], QUICK)
    assert poor.best is not None
    assert poor.best.name == "A, 1 vote"
    assert poor.honest == poor.optimistic  # one option: nothing is chosen
    assert poor.stable == 1
    assert rich.best is not None
    assert "B" in rich.best.verifiers
    assert rich.best.cost <= 4.0
    assert broke.best is None
    assert math.isnan(broke.honest.value)


def test_units_fall_back_to_what_all_runs_have():
    one, two = members(("A", 0.5, 1), ("B", 1.0, 2))
    tokens = replace(one, cost=Cost(prompt_tokens=100.0, answer_tokens=50.0))
    answers = replace(two, cost=Cost(answer_tokens=70.0))
    assert price([tokens, tokens]) == ("tokens", [150.0, 150.0])
    assert price([tokens, answers]) == ("answer tokens", [50.0, 70.0])
    assert price([one, answers]) == ("votes", [1.0, 1.0])
    with pytest.raises(ConfigError, match=r"unknown for B\. Evaluate again"):
        price([one, answers], "usd")
    with pytest.raises(ConfigError, match="units are usd, tokens, votes"):
        price([one], "euro")
    with pytest.raises(ConfigError, match="expected abstain or reject"):
        all_options([one], [1.0], "ignore")
    with pytest.raises(ConfigError, match="expected at most 6"):
        on_common_pairs(list("ABCDEFG"), [one.counts] * 7, [Cost()] * 7)


def test_a_verdict_costs_the_mean_of_the_votes_that_have_a_price():
    _, votes = made(("a", True, "q", "TTF"))
    priced = [replace(vote, usd=usd, length=10.0) for vote, usd in zip(votes, (0.1, 0.3, None), strict=True)]
    info = RunInfo(
        verifier="v", length_unit="tokens", settings={"usage": {"requests": 4, "prompt_tokens": 400}}
    )
    found = cost_of(priced, info)
    assert (found.usd, found.unpriced) == (pytest.approx(0.2), 1)
    assert (found.prompt_tokens, found.answer_tokens, found.tokens) == (100, 10, 110)
    assert str(found) == "$0.2, 100 prompt tokens, 10 answer tokens"
    for usage in (None, [], {"requests": 0, "prompt_tokens": 4}, {"requests": "4", "prompt_tokens": -1}):
        other = cost_of(votes, RunInfo(verifier="v", settings={"usage": usage}))
        assert not str(other)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name, seed in (("cheap", 1), ("dear", 2)):
        pairs, votes = drawn(10, 2, 4, seed=seed)
        write_run(tmp_path / "runs" / name, pairs, votes, RunInfo(verifier=name))
    return tmp_path


def test_the_command_prints_the_best_and_writes_all_of_it(folders):
    result = run("aggregate", folders / "runs", "--out", folders / "out", "--budget", 3)
    assert result.exit_code == 0, result.output
    assert "The best at a budget" in result.output
    given = json.loads((folders / "out" / "aggregate.json").read_text(), parse_constant=pytest.fail)
    assert (given["unit"], given["pairs"], len(given["budgets"])) == ("votes", 20, 1)
    assert given["budgets"][0]["cost"] <= 3
    assert {"weighted", "majority", "pessimistic", "single vote"} <= {one["rule"] for one in given["options"]}
    assert "cheap + dear" in (folders / "out" / "aggregate.html").read_text()
    assert "cheap: a verdict takes an unknown cost." in (folders / "out" / "aggregate.md").read_text()


def test_of_many_options_the_page_has_the_ensembles_that_no_cheaper_option_beats(monkeypatch):
    long = "A" + "x" * 200
    found = aggregate_votes(members((long, 0.9, 1), ("B", 0.8, 2), ("C", 0.7, 3)), QUICK)
    budgets = next(one for one in blocks(found) if isinstance(one, Table))
    assert budgets.rows[-1][1] == f"{long} + B + C, 4 + 4 + 4 votes, at least 6"

    def lines() -> list[tuple[str, float, float]]:
        table = [one for one in blocks(found) if isinstance(one, Table)][1]
        return [(str(row[0]), float(str(row[3])), float(str(row[4]).split()[0])) for row in table.rows]

    everything = lines()
    monkeypatch.setattr(page, "MOST", 10)
    few = lines()
    assert [one for one in few if "+" not in one[0]] == [one for one in everything if "+" not in one[0]]
    ensembles = [one for one in few if "+" in one[0]]
    assert 0 < len(ensembles) < len([one for one in everything if "+" in one[0]]) / 3
    of_all = [(one.option.cost, 100 * one.numbers["balanced_accuracy"].value) for one in found.results]
    for _, cost, value in ensembles:
        assert value == pytest.approx(max(best for paid, best in of_all if paid <= cost + 0.006), abs=0.051)
    assert f"The table has {len(few)} of {len(found.results)} options" in to_markdown(blocks(found))


def test_prompts_of_one_model_are_an_ensemble_named_by_the_prompt(tmp_path):
    for number, prompt in enumerate(("strict@1", "short@2")):
        info = RunInfo(verifier="m", settings={"prompt": prompt})
        write_run(tmp_path / str(number), *drawn(6, 2, 2, seed=number), info)
    names = [one.name for one in read_members([tmp_path])]
    assert names == ["m (prompt strict@1)", "m (prompt short@2)"]


def test_runs_of_different_sets_and_folders_without_a_run_are_refused(folders):
    pairs, votes = made(("other", True, "q", "TT"))
    write_run(folders / "runs" / "zz", pairs, votes, RunInfo(verifier="other"))
    result = run("aggregate", folders / "runs")
    assert result.exit_code == 1
    assert "cheap and other: the two verifiers have no pair in common" in result.stderr
    (folders / "empty").mkdir()
    result = run("aggregate", folders / "empty")
    assert result.exit_code == 1
    assert "no folder in it has one" in result.stderr


@pytest.mark.parametrize(
    "rows",
    [
        [("a", True, "q", "NN"), ("b", False, "r", "NN")],
        [("a", True, "q", "TF"), ("b", True, "r", "TT")],
        [("a", False, "q", "T")],
        [("a", True, "q", "TTTT"), ("b", False, "q", "F"), ("c", False, "r", "FT"), ("d", True, "s", "TN")],
    ],
)
def test_sets_without_verdicts_of_one_class_of_one_question_and_with_unequal_votes_are_measured(rows):
    member = Member(name="v", counts=counted(*rows), cost=Cost())
    found = aggregate_votes([member, replace(member, name="w")], QUICK)
    assert found.decides == ("balanced_accuracy" if {row[1] for row in rows} == {True, False} else "accuracy")
    assert all(choice.best is not None for choice in found.choices)
