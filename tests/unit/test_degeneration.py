"""The rules of the fluency veto: for each the smallest trace that it sees, and the nearest that it must not see."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pv_rl.errors import ConfigError, PluginError
from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration import (
    BUILTIN_RULES,
    Anomaly,
    DegenerationRule,
    find_anomalies,
    rules_from_config,
)
from pv_rl.rewards.degeneration.rule import MOST_SPANS
from pv_rl.rewards.degeneration.tandem import tandem_repeats

END = "\n\n### False"
PROOF = (
    "Step 1 uses that n is even, which was given. Step 2 divides by x, and x may be 0, so it does not follow."
)


def rules_hit(text, rules=None):
    return {anomaly.rule for anomaly in find_anomalies(text, rules)}


def evidence(text, rule):
    return [text[one.start : one.end] for one in find_anomalies(text) if one.rule == rule]


def only(**settings):
    """The built-in rule that is named, with its thresholds changed."""
    return [rule for rule in rules_from_config(settings) if rule.name in settings]


# phrase_loop


def test_a_phrase_said_four_times_is_a_loop_and_the_evidence_is_all_of_it():
    loop = "the bound in step two does not hold " * 4
    assert evidence(f"{PROOF} So {loop}at all.{END}", "phrase_loop") == [f" {loop}"]


def test_a_phrase_said_three_times_is_none():
    assert not rules_hit(PROOF + " the bound in step two does not hold" * 3 + END)


def test_a_loop_within_a_round_of_a_longer_one_is_seen():
    text = ("First the lemma is applied, by (1). " + "so it is wrong, " * 8) * 3
    assert any(len(found) < 140 for found in evidence(text + END, "phrase_loop"))


def test_a_loop_needs_no_spaces():
    assert "phrase_loop" in rules_hit(PROOF + "the-proof-is-wrong-because-of-step-two;" * 4 + END)


def test_a_loop_in_another_script_is_seen():
    assert rules_hit("这个证明的第二步是错误的因为没有考虑等于零的情况" * 6 + END)


@pytest.mark.parametrize(
    "fluent",
    [
        "red, blue, " * 9,
        r"\frac{1}{2} + " * 12,
        "2 \\times " * 15,
        "| :---: " * 14 + "|",
        "1 & 0 & 0 & 0 & 0 & 0 & 0 & 0 \\\\\n" * 8,
        "\\quad " * 20,
        "0 0 0 0 0 0 0 0 0 0\n" * 10,
        "\\left(" * 12 + "x" + "\\right)" * 12,
    ],
)
def test_mathematics_may_repeat_itself(fluent):
    assert not rules_hit(f"{PROOF}\n{fluent}\n{PROOF[:40]}{END}")


# ngram_loop


def test_a_phrase_that_changes_one_word_to_and_fro_is_a_loop():
    rounds = [f"so in the {word} it says that the claim holds" for word in ("proof", "text")] * 4
    loop = " ".join(rounds)
    (found,) = evidence(f"{PROOF} {loop} {PROOF}{END}", "ngram_loop")
    assert found.count("the claim holds") == 7  # what is new is a tenth of the stretch at most
    assert len(found) < len(loop) + 20


def test_a_list_whose_entries_differ_by_a_number_is_none():
    lines = [
        f"Step {n} is incorrect because it is based on the incorrect result of step {n - 1}."
        for n in range(4, 30)
    ]
    assert not rules_hit("\n".join(lines) + END)


def test_a_table_of_few_letters_is_none():
    rows = ["| A | B | A | B |", "| B | A | B | A |"]
    assert not rules_hit(PROOF + "\n" + "\n".join(f"{rows[n % 2]} {n} |" for n in range(12)) + END)


# sentence_loop


def test_a_cycle_of_three_sentences_is_a_loop():
    cycle = "We check the first step again. It uses the lemma from above. The lemma needs x to be positive. "
    found = evidence(PROOF + "\n" + cycle * 4 + END, "sentence_loop")
    assert len(found) == 1
    assert found[0].count("the first step again") == 4


def test_a_sentence_is_the_same_behind_but_and_now():
    text = "\n".join(
        f"{start}the second step is not justified." for start in ("", "But ", "Now ", "* ", "So ")
    )
    assert "sentence_loop" in rules_hit(PROOF + "\n" + text + END)


def test_a_judgment_that_ends_every_step_alike_is_none():
    lines = [
        f"Step {n}: the sum is {n * n + 1}. This step is incorrect because the equation is." for n in range(9)
    ]
    assert not rules_hit("\n".join(lines) + END)


def test_steps_that_are_quoted_and_then_checked_are_none():
    steps = [f"Step {n}: the cost of {n} baskets is ${18 * n}." for n in range(1, 7)]
    checks = [f"{step} This step is clearly correct." for step in steps]
    assert not rules_hit("\n".join(steps + checks) + END)


def test_rows_of_a_matrix_are_no_sentences():
    rows = "I & I & M & M & O & O \\\\\nM & M & O & O & I & I \\\\\n"
    assert not rules_hit(PROOF + "\n" + rows * 5 + END)


# empty_announcements


def test_plans_that_nothing_follows_are_seen():
    plans = (
        "Let me find errors.\nBut I need to verify the proof.\nNow, let me find the errors in the proof.\n"
    )
    text = f"{PROOF}\n{plans}In the proof, in step 2, coordinates, etc.\nBut let me find one error.{END}"
    assert evidence(text, "empty_announcements") == [
        f"{plans}In the proof, in step 2, coordinates, etc.\nBut let me find one error"
    ]


def test_plans_that_are_carried_out_are_fluent():
    text = (
        "Let me check the proof step by step. Step 1 uses AM-GM, and a, b > 0. Fine. Let me check step 2. It needs n "
        "even. n is even by (1). Now let me look for a gap in the argument. The base case is n = 2. There 4 > 3. Let "
        "me verify the solution. It is complete."
    )
    assert not rules_hit(text + END)


def test_plans_with_something_of_their_own_are_fluent():
    text = "".join(f"Let me check the step for n = {n}. It holds. " for n in range(2, 9))
    assert not rules_hit(text + END)


# self_interruption


def test_ten_interruptions_with_nothing_between_are_seen():
    chain = "Wait, no. Hmm. But wait, actually, let me check again. Hold on, wait. Let me see. Hmm, the step, wait"
    assert evidence(f"{PROOF} {chain} is wrong.{END}", "self_interruption") == [chain]


def test_thinking_aloud_is_fluent():
    text = (
        "<think>\nOkay. E(1) = 1. Wait, no, actually, E(1) is known to be 1, but let me confirm. Wait, no, that's not "
        "right. Let me compute it: cos integrates to 1. Hmm, wait, wait. Let me reconsider. "
        "Actually, hold on, let me re-check once more. "
        "The limit is 0. Hmm. n = 1: no, n = 2: no, n = 3: no, n = 4: no, n = 5: no, n = 6: no, n = 7: no, n = 8: no, "
        "n = 9: no, n = 10: no.\n</think>\nStep 2 is wrong."
    )
    assert not rules_hit(text + END)


def test_means_are_no_interruptions():
    assert not rules_hit("By AM-HM, QM-HM, HM, HM, HM, HM, HM, HM, HM, HM, HM, HM the claim follows." + END)


# runaway_repetition


@pytest.mark.parametrize(
    "runaway",
    [
        "a" * 48,
        "3" * 300,
        "\n" * 300,
        "the " * 18,
        "wrong\n\n" * 16,
        "\n## 61" * 50,
        "81" * 150,
    ],
)
def test_what_does_not_stop_is_seen(runaway):
    found = evidence(f"{PROOF} 7{runaway}{END}", "runaway_repetition")
    assert len(found) == 1
    assert len(found[0]) >= len(runaway) - 4


@pytest.mark.parametrize(
    "fluent",
    [
        "a" * 40,
        "0." + "3" * 120,
        "-" * 120,
        "=" * 200,
        " " * 250,
        "very very very very very",
        "HTHTHTHTHTHTHTHTHTHTHTHT",
        "1 + " * 30,
        "heads, " * 9,
        "10" * 60,
    ],
)
def test_what_ends_in_time_is_fluent(fluent):
    assert not rules_hit(f"{PROOF} {fluent} {PROOF[:30]}{END}")


# meta_commentary and chat_markup


def test_dithering_over_the_format_is_seen():
    text = (
        "Since this is a text, I need to output at the end whether the proof is correct or not, but in the output, it "
        'says to output True or False, but in the example, it says "### True" but in the user message, it says "### '
        'True or False" but in the example, it says "### True".'
    )
    (found,) = evidence(f"{PROOF}\n{text}{END}", "meta_commentary")
    assert found.startswith("need to output")
    assert found.endswith('says "###')


def test_one_reminder_of_the_format_is_fluent():
    text = "The user wants a verdict. The prompt says to end with ### True or ### False, so I have to output ### False."
    assert not rules_hit(f"{PROOF}\n{text}{END}")


def test_examples_in_a_proof_are_no_commentary():
    text = "".join(f"In the example, the function has the output {n * n} for n = {n}. " for n in range(2, 10))
    assert not rules_hit(PROOF + text + END)


def test_a_quoted_answer_of_the_student_is_no_commentary():
    lines = [f'Step {n}: The student writes "#### {n}", but the answer should be {n + 3}.' for n in range(8)]
    assert not rules_hit("\n".join(lines) + END)


def test_a_chat_mark_with_text_behind_it_is_seen():
    assert evidence(f"{PROOF}<|im_start|>assistant\n{PROOF}{END}", "chat_markup") == ["<|im_start|>"]
    assert evidence(f"{PROOF}<｜User｜>{PROOF}{END}", "chat_markup") == ["<｜User｜>"]


@pytest.mark.parametrize(
    "mark", ["<|im_end|>", " <|im_end|>\n<|endoftext|>\n", "</s>", "<｜end▁of▁sentence｜>"]
)
def test_marks_at_the_very_end_are_fluent(mark):
    assert not rules_hit(PROOF + END + mark)


def test_absolute_values_are_no_chat_marks():
    assert not rules_hit(f"If 0 <|x|> 1 or a<|xy|>b then {PROOF}{END}")


# empty_justification and text_after_verdict


@pytest.mark.parametrize(
    "text",
    ["### True", "\n\n**### True**", "Final verdict: ### True", "<think>\n\n</think>\n\n### True<|im_end|>"],
)
def test_a_verdict_with_nothing_before_it_is_seen(text):
    (found,) = evidence(text, "empty_justification")
    assert found.startswith("### True")


@pytest.mark.parametrize(
    "text", ["so all fine ### True", "<think>x = 1 holds</think>### True", "x = 1.\n### True"]
)
def test_a_short_justification_is_one(text):
    assert not rules_hit(text)


def test_text_after_the_verdict_is_the_evidence():
    assert evidence(f"{PROOF}{END}\n\nHowever, step 3 is fine.<|im_end|>", "text_after_verdict") == [
        "However, step 3 is fine."
    ]
    assert evidence(f"{PROOF}{END}. Because x may be 0.", "text_after_verdict") == ["Because x may be 0."]


@pytest.mark.parametrize(
    "text",
    [
        PROOF + END + "\n### False\n",
        "The prompt says: end with\n> ### True\n" + PROOF + END,
        "I have to end with ### True or ### False.\n" + PROOF + END,
        "### True statements\n" + PROOF + END,
        "<think>\n### True\nwait, no: " + PROOF + "</think>" + END,
        "#### True\n" + PROOF + END,
        "So it is\n### True\nwait, no: " + PROOF + "</think>" + END,
    ],
)
def test_a_verdict_that_is_not_final_or_not_alone_is_fluent(text):
    assert "text_after_verdict" not in rules_hit(text)


@pytest.mark.parametrize("text", [PROOF, PROOF[:60], "<think>\n" + PROOF, ""])
def test_a_trace_that_was_cut_off_is_no_anomaly_by_itself(text):
    assert not rules_hit(text)


# broken_encoding and script_soup


@pytest.mark.parametrize(
    "broken",
    [
        "\ufffd" * 6,
        "\ufffd and so \ufffd\ufffd is \ufffd\ufffd\ufffd",
        "a ≤ b ≥ c".encode().decode("cp1252"),
        "á, é and í".encode().decode("latin-1"),
        "\x00\x01\x02\x03\x07\x08",
        "\ud800\udc00\ud801\udfff\ud800\ud800",
        "\ufdd0\uffff\U0004ffff\U00050000\U00060000\U00070000",
    ],
)
def test_broken_characters_are_seen(broken):
    assert "broken_encoding" in rules_hit(f"{PROOF} {broken} {END}")


@pytest.mark.parametrize(
    "fluent",
    [
        "\ufffd" * 5,
        "∀ε>0 ∃δ: |x−a|<δ ⇒ |f(x)−f(a)|<ε, ℵ₀ ≤ 2^ℵ₀, 𝔽₂, 😀, Ÿ, ½, «Île», Âge, SÃO, ± 1, café naïve Ångström œuvre",
        "Erdős, Gödel, Poincaré, Čech, Łoś, Đoković, Þórr",
        "line\r\nwith\ttabs\x0cand a form feed\x85",
    ],
)
def test_letters_and_signs_of_other_languages_are_fluent(fluent):
    assert not rules_hit(f"{PROOF} {fluent} {END}")


def test_words_of_three_scripts_are_a_soup():
    assert "script_soup" in rules_hit(f"{PROOF} доказательство 正确 증명 {END}")


@pytest.mark.parametrize(
    "fluent", ["这个证明是正确的。", "Доказательство верно, ш и щ", "証明はここで終わる。", "ω → Ω, ж"]
)
def test_one_other_language_is_fluent(fluent):
    assert not rules_hit(f"{PROOF} {fluent} {END}")


# The gate


def test_anomalies_are_sorted_by_start_and_pickle():
    text = "\ufffd" * 9 + "wrong because of step two, " * 9 + "<|im_start|>x" + END
    found = find_anomalies(text)
    assert [one.rule for one in found] == ["broken_encoding", "phrase_loop", "chat_markup"]
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_rule_reports_its_first_spans_only():
    assert len(find_anomalies("<|im_start|>x" * 99, only(chat_markup={}))) == MOST_SPANS


def test_a_threshold_can_be_moved_both_ways():
    text = PROOF + " the bound in step two does not hold" * 5 + END
    assert rules_hit(text, only(phrase_loop={"times": 5}))
    assert not rules_hit(text, only(phrase_loop={"times": 6}))


def test_every_threshold_has_an_effect_or_a_bound():
    moved = {rule.name: {one.name: one.low for one in rule.thresholds} for rule in BUILTIN_RULES}
    lenient = rules_from_config(moved)
    for rule, strict in zip(BUILTIN_RULES, lenient, strict=True):
        assert rule.thresholds
        assert [one.default for one in strict.thresholds] == [one.low for one in rule.thresholds]
        assert all(one.meaning for one in rule.thresholds)
        strict(PROOF + END)


def test_a_rule_can_be_left_out_and_the_others_stay():
    names = [
        rule.name
        for rule in rules_from_config({"broken_encoding": False, "phrase_loop": True, "chat_markup": None})
    ]
    assert names == [rule.name for rule in BUILTIN_RULES if rule.name != "broken_encoding"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"sentense_loop": {}},
            "no degeneration rule 'sentense_loop'. Did you mean sentence_loop.*Rules: phrase_loop",
        ),
        ({"sentence_loop": {"time": 3}}, "no threshold 'time'. Did you mean times.*Thresholds: times"),
        ({"sentence_loop": {"times": 1}}, "sentence_loop.times is 1 .*a number from 2 to inf"),
        ({"sentence_loop": {"times": "4"}}, "is '4'"),
        ({"sentence_loop": {"share": True}}, "is True"),
        ({"sentence_loop": {"times": None}}, "is None"),
        ({"sentence_loop": {"share": float("nan")}}, "is nan"),
        ({"sentence_loop": {"times": float("inf")}}, "is inf"),
        ({"sentence_loop": 4}, "is set to 4; it is false, true, or thresholds by name: times"),
        ({7: {}}, "no degeneration rule 7"),
    ],
)
def test_a_wrong_setting_says_what_there_is(given, says):
    with pytest.raises(ConfigError, match=says):
        rules_from_config(given)


# Rules from elsewhere


def find_shouts(text, times):
    place = text.find("!" * int(times))
    return [(place, place + int(times))] if place >= 0 else []


SHOUTING = DegenerationRule(
    name="shouting",
    find=find_shouts,
    thresholds=(Parameter(name="times", default=3, low=1, meaning="exclamation marks in a row"),),
    meaning="exclamation marks",
)


def test_a_rule_from_elsewhere_is_set_and_applied_like_ours():
    rules = rules_from_config({"shouting": {"times": 4}}, (*BUILTIN_RULES, SHOUTING))
    assert find_anomalies("no!!! no!!!!", rules) == [Anomaly(rule="shouting", start=8, end=12)]


@pytest.mark.parametrize(
    ("find", "says"),
    [
        (lambda text: [(0, 99)], r"gave \(0, 99\); it gives \(start, end\) with 0 <= start < end <= 5"),
        (lambda text: [(2, 2)], r"gave \(2, 2\)"),
        (lambda text: [None], "gave None"),
        (lambda text: 1 / 0, "failed: ZeroDivisionError"),
        (lambda text: None, "failed: TypeError"),
    ],
)
def test_a_rule_that_misbehaves_is_named(find, says):
    with pytest.raises(PluginError, match=f"rule 'odd' {says}"):
        find_anomalies("a b c", [DegenerationRule(name="odd", find=find)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "two words", "find": find_shouts},
        {"name": "odd", "find": None},
        {"name": "odd", "find": find_shouts, "thresholds": (Parameter(name="times"),)},
        {"name": "odd", "find": find_shouts, "thresholds": [3]},
    ],
)
def test_a_rule_that_is_none_is_refused(wrong):
    with pytest.raises(PluginError):
        DegenerationRule(**wrong)


# Any text, in linear time


PIECES = [
    "a",
    ".",
    "\n",
    " ",
    "wait, ",
    "let me find an error. ",
    "### True",
    "says ### ",
    "<|im_end|>",
    "</think>",
]
PIECES += [
    "<think>",
    "é",
    "Ã©",
    "\ufffd",
    "İ",
    "ſ",
    "\ud800",
    "0 ",
    "\\\\",
    "证明",
    "ошибка",
    "증명",
    "\x1c",
    "\x85",
    "it. ",
]
RUNS = st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 80)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(exclude_categories=()))
    | RUNS.map(lambda runs: "".join(piece * times for piece, times in runs))
)
@example("İ" * 80 + "the same sentence again. " * 9 + "wait, " * 30)
def test_any_text_gives_sorted_spans_within_it(text):
    found = find_anomalies(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert found == sorted(found, key=lambda one: (one.start, one.end, one.rule))


@settings(max_examples=100, deadline=None)
@given(
    st.text("ab ", min_size=1, max_size=25),
    st.integers(3, 9),
    st.text("xyz", max_size=60),
    st.text("uvw", max_size=60),
)
def test_a_tandem_repeat_is_found_wherever_it_stands(piece, rounds, before, after):
    text = before + piece * rounds + after
    if len(piece * rounds) >= 44 + len(piece):
        assert any(
            one.start <= len(before) and one.end >= len(before) + len(piece * rounds)
            for one in tandem_repeats(text)
        )


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a b ",
        "a. ",
        "wait, ",
        "let me check the proof. ",
        "says to output ",
        "### True ",
        "### True\n",
        "<|im_end|>",
        ".)",
        "-*",
        "\n---",
        "<think></think>",
        "hmmm",
        "Ã©",
        "\x00",
        "İ a. ",
        "says " + '"' * 200,
        "step 1 is so. step 2 is so. ",
    ],
)
def test_time_grows_with_the_text_and_not_with_its_square(piece):
    def seconds(size):
        text = piece * (size // len(piece))
        best = float("inf")
        for run in range(3):
            fresh = text + "x" * run
            start = time.process_time()
            find_anomalies(fresh)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(80_000) < 24 * seconds(10_000)  # 8 if linear, 64 if quadratic
