"""Precision and recall of labels, agreement of judges: by hand, by brute force and by two libraries."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, count, permutations

import pytest
from scipy.stats import binomtest

from pv_data.records import Label
from pv_data.report.agreement import Peers, Raters, Ratio, raters
from pv_data.report.labels import measure_labels
from pv_data.report.page import write_label_report
from pv_rl.errors import DataError

NUMBERS = count()


def label(votes: str, known: bool | None, slice_: str = "S/proof/m", value: bool | None = None) -> Label:
    return Label(
        proof_id=f"p{next(NUMBERS)}",
        problem_id="q",
        slice=slice_,
        value=value,
        rule="unanimous 3 of 3",
        votes=tuple(vote == "T" for vote in votes),
        judges=tuple("abc"[: len(votes)]),
        known=known,
    )


def counts(ratio: Ratio) -> tuple[int, int]:
    return ratio.hits, ratio.number


def rule(report, name):
    return next(one for one in report.pooled.rules if one.rule == name)


EXAMPLE = [label("TTT", True, value=True), label("TTF", True), label("TFF", True), label("TTF", False)]


def test_the_example_of_the_docstring():
    report = measure_labels(EXAMPLE)
    unanimous, majority = rule(report, "unanimous"), rule(report, "majority")
    assert counts(unanimous.kept) == (1, 4)
    assert counts(unanimous.precision_true) == (1, 1)
    assert counts(unanimous.recall_true) == (1, 3)
    assert counts(unanimous.precision_false) == (0, 0)
    assert counts(unanimous.recall_false) == (0, 1)
    assert counts(majority.kept) == (4, 4)
    assert counts(majority.precision_true) == (2, 3)
    assert counts(majority.recall_true) == (2, 3)
    assert counts(majority.precision_false) == (0, 1)
    assert counts(majority.recall_false) == (0, 1)
    assert counts(majority.right) == (2, 4)
    assert rule(report, "of this run").precision_true == unanimous.precision_true


def test_what_is_not_known_counts_as_judged_and_nowhere_else():
    report = measure_labels([*EXAMPLE, label("TTT", None, value=True), label("TFT", None)])
    assert counts(rule(report, "unanimous").kept) == (2, 6)
    assert counts(rule(report, "unanimous").precision_true) == (1, 1)
    assert counts(rule(report, "majority").right) == (2, 4)
    assert (report.pooled.known_true, report.pooled.known_false) == (3, 1)


def test_a_tie_is_no_majority():
    report = measure_labels([label("TF", True), label("FF", False)])
    assert counts(rule(report, "majority").kept) == (1, 2)


def test_each_slice_stands_for_itself_and_all_add_up():
    labels = [*EXAMPLE, label("FFF", False, "S/proof/n", False), label("FFF", True, "S/proof/n", False)]
    report = measure_labels(labels)
    assert [(part.slice, part.judged) for part in report.slices] == [("S/proof/m", 4), ("S/proof/n", 2)]
    other = report.slices[1].rules[0]
    assert (counts(other.precision_false), counts(other.recall_true)) == ((1, 2), (0, 1))
    assert counts(rule(report, "unanimous").right) == (2, 3)


def test_intervals_are_exact():
    labels = [label("TTT", number < 27, value=True) for number in range(30)]
    found = rule(measure_labels(labels), "unanimous").precision_true
    expected = binomtest(27, 30).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == 0.9


def test_votes_without_a_judge_are_refused():
    with pytest.raises(DataError, match="has 3 votes of 2 judges"):
        measure_labels([replace(label("TTT", True), judges=("a", "b"))])


def test_each_judge_is_held_to_what_is_known():
    report = measure_labels(EXAMPLE)
    judges = {one.judge: one for one in report.pooled.judges}
    assert counts(judges["a"].accepts) == (4, 4)
    assert (counts(judges["a"].on_right), counts(judges["a"].on_wrong)) == ((3, 3), (0, 1))
    assert (counts(judges["c"].on_right), counts(judges["c"].on_wrong)) == ((1, 3), (1, 1))
    assert counts(judges["c"].right) == (2, 4)
    assert judges["a"].accepts.low is not None


def test_a_judge_that_voted_more_than_once_on_a_proof_has_no_interval():
    thrice = Label(
        proof_id="p",
        problem_id="q",
        slice="s",
        value=None,
        rule="r",
        votes=(True, True, False),
        judges=("r1", "r1", "mini"),
        known=True,
    )
    judges = {one.judge: one for one in measure_labels([thrice]).pooled.judges}
    assert counts(judges["r1"].right) == (2, 2)
    assert judges["r1"].right.low is None
    assert judges["mini"].right.low == 0.0


# Each judge beside the others.

TWICE = ("r1", "r1", "r1", "mini", "gem")


def of_panel(votes: str, judges: tuple[str, ...] = TWICE) -> Label:
    return replace(label(votes[:3], None), votes=tuple(vote == "T" for vote in votes), judges=judges)


def beside(labels: list[Label]) -> dict[str, Peers]:
    return {one.judge: one.peers for one in measure_labels(labels).pooled.judges}


def test_a_judge_beside_the_others_by_hand():
    """r1 is the docstring's example; mini is alone with its T on the third proof."""
    found = beside([of_panel("TTTTT"), of_panel("TTFTT"), of_panel("FFFTF")])
    r1, mini, gem = found["r1"], found["mini"], found["gem"]
    assert (counts(r1.with_others), r1.ties, r1.kappa) == ((5, 6), 3, 0.0)
    assert (counts(r1.others_accept), counts(r1.others_reject)) == ((5, 6), (0, 0))
    assert counts(r1.alike) == (2, 3)
    assert r1.pairwise == pytest.approx(7 / 9)
    assert (counts(mini.with_others), mini.ties) == ((2, 3), 0)
    assert mini.kappa == pytest.approx(0.0)  # it accepts everything
    assert (counts(gem.with_others), gem.kappa) == ((3, 3), 1.0)
    assert (counts(mini.alike), mini.pairwise) == ((0, 0), None)


def test_only_a_judge_that_votes_once_a_proof_has_an_interval_beside_the_others():
    found = beside([of_panel("TTTTT")])
    assert found["r1"].with_others.low is None
    assert found["mini"].with_others.low == pytest.approx(0.025)


def test_a_judge_alone_has_nobody_to_agree_with():
    (alone,) = beside([of_panel("TTF", ("r1",) * 3)]).values()
    assert (counts(alone.with_others), alone.ties, alone.kappa) == ((0, 0), 3, None)
    assert counts(alone.alike) == (0, 1)
    assert alone.pairwise == pytest.approx(1 / 3)


def test_a_judge_beside_the_others_is_what_a_count_of_all_pairs_gives():
    rng = random.Random(1)
    labels = [of_panel("".join(rng.choices("TF", (3, 1), k=5))) for _ in range(300)]
    for judge, found in beside(labels).items():
        own, most = [], []
        for one in labels:
            others = [vote for by, vote in zip(one.judges, one.votes, strict=True) if by != judge]
            if 2 * sum(others) != len(others):
                mine = [vote for by, vote in zip(one.judges, one.votes, strict=True) if by == judge]
                own += mine
                most += [2 * sum(others) > len(others)] * len(mine)
        same = [a == b for a, b in zip(own, most, strict=True)]
        assert counts(found.with_others) == (sum(same), len(same))
        p, q, seen = sum(own) / len(own), sum(most) / len(most), sum(same) / len(same)
        chance = p * q + (1 - p) * (1 - q)
        assert found.kappa == pytest.approx((seen - chance) / (1 - chance))


def test_judges_beside_the_others_are_in_all_three_forms(tmp_path):
    write_label_report(tmp_path, measure_labels([of_panel("TTTTT"), of_panel("TTFTT"), of_panel("FFFTF")]))
    text = (tmp_path / "labels.md").read_text()
    line = "| S/proof/m | r1 | 83.3, 5/6 | 3 | 0.000 | 83.3, 5/6 | - | 66.7, 2/3 | 77.8 |"
    assert line in [re.sub(r" \(\S+ to \S+\)", "", one) for one in text.splitlines()]
    assert "Each judge beside the others" in (tmp_path / "labels.html").read_text()
    data = json.loads((tmp_path / "labels.json").read_text())["slices"][0]["judges"]
    assert [(one["judge"], one["peers"]["ties"]) for one in data] == [("gem", 0), ("mini", 0), ("r1", 3)]


# Agreement.

SOME = {(5, 5): 2, (3, 5): 1, (0, 5): 1}


def test_the_example_of_agreement():
    found = raters(SOME)
    assert (found.items, found.votes) == (4, 20)
    assert found.raw == pytest.approx(0.85)
    assert found.kappa == pytest.approx((0.85 - 0.545) / 0.455)
    assert found.ac1 == pytest.approx((0.85 - 0.455) / 0.545)
    assert found.alpha == pytest.approx(1 - 0.15 / (1 - (13 * 12 + 7 * 6) / 380))
    assert (found.on_true, found.on_false) == (pytest.approx(11.5 / 13), pytest.approx(5.5 / 7))


def test_where_all_votes_are_alike_chance_explains_everything_but_to_gwet():
    found = raters({(5, 5): 10})
    assert (found.raw, found.kappa, found.alpha, found.ac1) == (1.0, None, None, 1.0)
    assert (found.on_true, found.on_false) == (1.0, None)


def test_with_no_pair_of_votes_there_is_nothing_to_say():
    assert raters({(1, 1): 5, (0, 0): 2}) == Raters(items=0, votes=0)
    assert raters({**SOME, (1, 1): 7}) == raters(SOME)


def some_votes(seed: int, even: bool) -> list[list[bool]]:
    rng = random.Random(seed)
    return [
        [rng.random() < rng.choice([0.1, 0.8]) for _ in range(5 if even else rng.randint(2, 5))]
        for _ in range(40)
    ]


def found_in(votes: list[list[bool]]) -> Raters:
    return raters(Counter((sum(one), len(one)) for one in votes))


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_that_of_all_pairs_of_votes(seed, even):
    votes = some_votes(seed, even)
    found = found_in(votes)
    shares = [sum(a == b for a, b in combinations(one, 2)) / len(list(combinations(one, 2))) for one in votes]
    assert found.raw == pytest.approx(sum(shares) / len(votes))
    everything = [vote for one in votes for vote in one]
    pairs = list(permutations(everything, 2))
    by_chance = sum(a != b for a, b in pairs) / len(pairs)
    seen = sum(sum(a != b for a, b in permutations(one, 2)) / (len(one) - 1) for one in votes) / len(
        everything
    )
    assert found.alpha == pytest.approx(1 - seen / by_chance)


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_agreement_is_that_of_the_libraries(seed, even):
    krippendorff = pytest.importorskip("krippendorff", reason="pip install krippendorff")
    cac = pytest.importorskip("irrCAC.raw", reason="pip install irrCAC")
    pd = pytest.importorskip("pandas")
    votes = some_votes(seed, even)
    found = found_in(votes)
    table = pd.DataFrame(
        [[float(vote) for vote in one] + [None] * (5 - len(one)) for one in votes], dtype=float
    )
    value_counts = [[len(one) - sum(one), sum(one)] for one in votes]
    alpha = krippendorff.alpha(value_counts=value_counts, level_of_measurement="nominal")
    assert found.alpha == pytest.approx(alpha)
    library = cac.CAC(table, digits=12, categories=[0.0, 1.0])  # else a vote that is missing is a third
    assert found.ac1 == pytest.approx(library.gwet()["est"]["coefficient_value"], abs=1e-9)
    assert found.kappa == pytest.approx(library.fleiss()["est"]["coefficient_value"], abs=1e-9)


# The pages.

HOSTILE = "<script>alert(1)</script>|\x1b[31m&"


def test_the_report_is_written_in_three_forms_that_agree(tmp_path):
    report = measure_labels([*EXAMPLE, label("FFF", False, "S/proof/n", False)])
    write_label_report(tmp_path, report, "Mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.html", "labels.json", "labels.md"]
    text = (tmp_path / "labels.md").read_text()
    assert "5 proofs in 2 slices were judged; rule of the run: unanimous 3 of 3." in text
    assert (
        "Unanimity keeps 40.0 % of the proofs and its labels are true in 100.0 %; majority keeps 100.0 %"
        in text
    )
    assert "| S/proof/m | unanimous, as this run | 4 | 25.0 % | 3 / 1 | 100.0 (2.5 to 100.0), 1/1 |" in text
    assert "| S/proof/m | majority | 4 | 100.0 % | 3 / 1 | 66.7 (9.4 to 99.2), 2/3 |" in text
    data = json.loads((tmp_path / "labels.json").read_text())
    assert data["pooled"]["rules"][0]["kept"]["hits"] == 2
    assert "http" not in (tmp_path / "labels.html").read_text().replace("http-equiv", "")


def test_a_run_whose_rule_is_another_has_a_line_of_its_own(tmp_path):
    labels = [label("TTF", True, value=True), label("TFF", False)]  # weighted, say
    write_label_report(tmp_path, measure_labels(labels))
    text = (tmp_path / "labels.md").read_text()
    assert "| S/proof/m | of this run | 2 | 50.0 % |" in text
    assert "as this run" not in text


def test_names_from_outside_are_harmless_in_all_forms(tmp_path):
    hostile = Label(
        proof_id="p",
        problem_id="q",
        slice=f"{HOSTILE}/proof/{HOSTILE}",
        value=True,
        rule=HOSTILE,
        votes=(True,),
        judges=(HOSTILE,),
        known=True,
    )
    write_label_report(tmp_path, measure_labels([hostile]), HOSTILE)
    for name in ("labels.md", "labels.html"):
        text = (tmp_path / name).read_text()
        assert "<script" not in text.replace("\\<", "")
        assert "\x1b" not in text
    assert json.loads((tmp_path / "labels.json").read_text())["slices"][0]["slice"].startswith("<script>")


def test_nothing_known_and_nothing_judged_are_said_so(tmp_path):
    write_label_report(tmp_path, measure_labels([label("TTT", None, value=True)]))
    assert "Of none it is known by itself whether it is right" in (tmp_path / "labels.md").read_text()
    write_label_report(tmp_path, measure_labels([]))
    assert "0 proofs in 0 slices were judged; rule of the run: none." in (tmp_path / "labels.md").read_text()
