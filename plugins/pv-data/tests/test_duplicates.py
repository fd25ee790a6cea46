"""Near-duplicates: what is the same problem, which go together, and what a test set has of a run."""

from __future__ import annotations

from itertools import combinations

import pytest
from sources_cases import DATA, needs_data, problems, real

from pv_data.duplicates import clusters, contamination, first_of_each, pairs, problems_of
from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similar_pairs, similarity
from pv_data.duplicates.shingles import normalised, shingles
from pv_data.records import Aside, Problem
from pv_rl.errors import ConfigError

PRIMES = "Let $n \\geq 2$ be an integer. Prove that there is a prime $p$ with $n < p < 2n$, and find it for $n = 9$."


def problem(text: str, source: str = "S", native_id: str = "1") -> Problem:
    return Problem(source=source, native_id=native_id, text=text)


@pytest.mark.parametrize(
    "other",
    [
        PRIMES.replace("$", " $ ").upper().replace("\\GEQ", "\\geq"),
        PRIMES.replace("\\geq", "\\ge").replace("$n < p < 2n$", "\\(n\\,<\\;p\\quad<2n\\)"),
        PRIMES.replace(",", "").replace(".", "").replace("\\geq", "≥"),
        "\\textbf{" + PRIMES.replace(" ", "\n\n", 5) + "}",
        PRIMES.replace("$n < p < 2n$", "$$\\left. n<p<2n \\right.$$"),
    ],
)
def test_spelling_that_carries_no_meaning_makes_no_difference(other: str):
    assert normalised(other) == normalised(PRIMES)


def test_a_number_or_a_sign_makes_a_difference():
    assert normalised(PRIMES.replace("9", "8")) != normalised(PRIMES)
    assert normalised("$a < b$") != normalised("$a > b$")
    assert normalised("$\\alpha$") != normalised("$\\beta$")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            "设$n$为正整数，证明：在任意$n+1$个不超过$2n$的正整数中，必有两个数，其中一个整除另一个。",
            "设$n$为正整数，求证：在任意$n+1$个不大于$2n$的正整数中，必有两个数，其中一个整除另一个。",
        ),
        (
            "正の整数nに対して、2n以下のn+1個の整数の中に、一方が他方を割り切る組があることを示せ。",
            "正の整数nに対し、2n以下のn+1個の整数の中に、一方が他方を割り切る組があることを証明せよ。",
        ),
        (
            "จงพิสูจน์ว่าในบรรดาจำนวนเต็มบวกที่ไม่เกินสองเอ็นจะมีสองจำนวนที่จำนวนหนึ่งหารอีกจำนวนหนึ่งลงตัว",
            "จงแสดงว่าในบรรดาจำนวนเต็มบวกที่ไม่เกินสองเอ็นจะมีสองจำนวนที่จำนวนหนึ่งหารอีกจำนวนหนึ่งลงตัว",
        ),
    ],
)
def test_near_duplicates_are_found_in_scripts_without_spaces(text: str, changed: str):
    one, other = problem(text), problem(changed, "T")
    third = problem("已知数列满足首项为一，且每一项等于前一项的两倍加三，求它的通项公式。", "U")
    found = clusters([one, other, third])
    assert found[one.id] == found[other.id] != found[third.id]


def test_each_letter_of_a_script_without_spaces_is_a_token():
    assert normalised("设$n_1$为整数，$12$个 ＝ 无限") == [
        "设",
        "n",
        "1",
        "为",
        "整",
        "数",
        "12",
        "个",
        "=",
        "无",
        "限",
    ]
    assert normalised("정수 n이 주어졌다") == ["정수", "n이", "주어졌다"]
    assert len(normalised("证" * 30_000)) == 20_000


def test_similarity_is_shared_runs_of_three_over_all():
    # abc bcd cde against abc bcd cdf: 2 shared of 4
    assert similarity(shingles("a b c d e"), shingles("a b c d f")) == 0.5
    assert similarity(shingles("a b c d e"), shingles("A, b; c d $e$")) == 1.0
    assert similarity(shingles("a b c"), shingles("d e f")) == 0.0


def test_a_text_without_words_is_near_itself_only():
    found = clusters([problem("???"), problem("? ??", "T"), problem("", "U"), problem(";;;")])
    assert len(set(found.values())) == 3


def test_a_chain_of_near_duplicates_is_one_cluster_with_the_smallest_id_as_its_name():
    words = [chr(97 + number) * 2 for number in range(24)]
    texts = [" ".join(words[start : start + 20]) for start in (0, 2, 4)]
    # 18 runs of three each; neighbours share 16 of 20, the ends 14 of 22
    assert similarity(shingles(texts[0]), shingles(texts[1])) == 16 / 20
    assert similarity(shingles(texts[0]), shingles(texts[2])) == 14 / 22
    chain = [problem(text, source) for text, source in zip(texts, "STU", strict=True)]
    alone = problem("Something else altogether that nobody else asks.", "V")
    for order in ([*chain, alone], [alone, chain[2], chain[0], chain[1]]):
        found = clusters(order, threshold=0.7)
        assert {found[one.id] for one in chain} == {min(one.id for one in chain)}
        assert found[alone.id] == alone.id
        assert set(found) == {one.id for one in order}


def test_the_first_source_of_the_config_keeps_a_problem_of_several():
    rows = [
        problem(PRIMES, "A"),
        problem(PRIMES.lower(), "B"),
        problem("Is 91 a prime number or is it none?", "B"),
    ]
    kept = list(first_of_each(rows, clusters(rows)))
    assert kept[0] is rows[0]
    assert kept[2] is rows[2]
    assert isinstance(kept[1], Aside)
    assert (kept[1].reason, kept[1].row) == ("near-duplicate", rows[1].id)
    assert rows[0].id in kept[1].detail


@pytest.mark.parametrize("threshold", [0, -1, 1.1, float("nan")])
def test_a_threshold_that_is_no_similarity_is_refused(threshold: float):
    with pytest.raises(ConfigError, match="Jaccard"):
        clusters([], threshold=threshold)
    with pytest.raises(ConfigError, match="Jaccard"):
        contamination([], {}, threshold=threshold)


@pytest.mark.parametrize(("of", "weights"), [(shingles, (1.0,)), (blind, WEIGHTS)])
@needs_data
def test_the_index_finds_what_comparing_all_pairs_finds(of, weights, monkeypatch):
    texts = [of(one.text) for one in problems(real("olympiadbench"))[-160:]]
    of_kind = [*weights, 1.0, 1.0, 1.0]

    def jaccard(one: int, other: int) -> float:
        first, second = set(texts[one].tolist()), set(texts[other].tolist())
        both, either = (
            sum(of_kind[hash_ & 3] for hash_ in some) for some in (first & second, first | second)
        )
        return both / either

    every = [(a, b, jaccard(a, b)) for a, b in combinations(range(len(texts)), 2)]
    expected = [pair for pair in every if pair[2] >= 0.3]
    assert len(expected) > 100
    monkeypatch.setattr(pairs, "BLOCK", 1000)  # several blocks
    assert sorted(similar_pairs(texts, None, 0.3, weights)) == expected
    assert sorted(similar_pairs(texts[:99], texts[99:], 0.3, weights)) == [
        (a, b - 99, value) for a, b, value in expected if a < 99 <= b
    ]
    monkeypatch.setattr(pairs, "SMALL", 0)
    monkeypatch.setattr(pairs, "PAIRS", 40)
    found = list(similar_pairs(texts, None, 0.3, weights))
    assert 50 < len(found) == len(set(found)) < len(expected)
    assert set(found) < set(expected)


def test_a_template_with_more_copies_than_are_compared_is_one_cluster(monkeypatch):
    copies = [
        problem(f"Tom buys {n} pears and some figs in a shop. How much fruit is that?") for n in range(40)
    ]
    letters = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(40)]
    others = [problem(f"{one}um {one}ix {one}or {one}an fruit") for one in letters]
    monkeypatch.setattr(pairs, "SMALL", 0)
    monkeypatch.setattr(pairs, "PAIRS", 8)
    found = clusters([one for two in zip(copies, others, strict=True) for one in two], blinded=True)
    assert len({found[one.id] for one in copies}) == 1
    assert len(set(found.values())) == 1 + len(others)
    report = contamination(copies[:20], {"set": copies[20:]})
    assert report.counts() == {("S", "", "set"): 20}
    assert len(report.hits) <= 40  # the nearest of each, and not all 400 pairs


@needs_data
def test_problems_that_two_sources_share_are_found():
    bench, outputs = problems(real("proofbench")), problems(real("dsmathv2"))
    found = clusters([*bench, *outputs])
    shared = {found[one.id] for one in bench} & {found[one.id] for one in outputs}
    assert len(shared) == 29
    report = contamination(bench, {"outputs": outputs}, threshold=0.6)
    assert report.counts() == {("IMO-ProofBench", "", "outputs"): 29}
    assert all(hit.native_id == hit.test_id.partition("/")[2] for hit in report.hits)


def test_a_pair_that_is_decided_to_be_different_hides_no_other_pair():
    run, near, nearer = problem(PRIMES), problem(PRIMES + " Do it now.", "T", "2"), problem(PRIMES, "T", "3")
    sets = {
        "mine": [near, nearer],
        "copies": [problem(PRIMES, "U", "4"), problem(PRIMES + " Well.", "U", "5")],
    }
    others = [problem(PRIMES.replace("prime", "square"), native_id="6")]
    before = contamination([run, *others], sets)
    decisions = {
        (hit.problem_id, hit.test_problem_id): "different" for hit in before.hits if hit.native_id == "6"
    }
    after = contamination([run, *others], sets, decisions=decisions)
    assert before.counts() == after.counts() == {("S", "", "mine"): 2, ("S", "", "copies"): 2}
    assert len(after.rejected) == len(decisions) == 2


@needs_data
def test_contamination_is_counted_by_source_and_set_and_written_as_markdown():
    run = [problem(PRIMES, "A | B"), problem("Is 91 a prime number or is it none?", "C")]
    sets = {
        "mine": [
            problem(PRIMES.replace("prime $p$", "number") + " Do not use a table.", "X", "x|<b>1"),
            problem(PRIMES, "X", "x2"),
        ],
        "process": list(problems_of("processbench", DATA / "processbench")),
    }
    report = contamination(run, sets)
    assert [hit.test_id for hit in report.hits] == ["x2", "x|<b>1"]
    assert report.hits[0].similarity == 1.0 > report.hits[1].similarity >= 0.5
    assert report.counts() == {("A | B", "", "mine"): 1}
    assert report.rows()[0]["test_set"] == "mine"
    lines = report.to_markdown().splitlines()
    assert "| source | split | problems | mine (2) | process (413) |" in lines
    assert "| A \\| B | not exported | 1 | 1 | 0 |" in lines
    assert "| C | not exported | 1 | 0 | 0 |" in lines
    assert not any("<b>" in line for line in lines)
    assert "No pair was found." in contamination([run[1]], {"mine": sets["mine"]}).to_markdown()
