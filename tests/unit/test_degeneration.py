"""The rules of the fluency veto: for each the smallest trace that it sees, and the nearest that it must not see."""

from __future__ import annotations

import pickle
import random
import time
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from traces.loops import DISGUISES, TEXTS, looping_trace

from pv_rl.errors import ConfigError, PluginError
from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration import (
    BUILTIN_RULES,
    MOST_SPANS,
    Anomaly,
    DegenerationRule,
    find_anomalies,
    rules_from_config,
)
from pv_rules.tandem import tandem_repeats

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


@pytest.mark.parametrize(
    ("text", "period", "disguise"),
    [
        *((text, period, "plain") for text in TEXTS for period in (700, 3000, 12_000)),
        *((text, 1500, disguise) for text in TEXTS for disguise in DISGUISES),
    ],
)
def test_a_loop_of_any_period_is_seen_in_any_disguise_and_is_the_evidence(text, period, disguise):
    trace = looping_trace(text, period, disguise, seed=1)
    loops = [one for one in find_anomalies(trace) if one.rule in ("phrase_loop", "runaway_repetition")]
    assert any(one.end - one.start > 0.9 * len(trace) and one.end <= trace.rindex(END) + 2 for one in loops)


def test_look_alikes_and_what_cannot_be_seen_are_folded_and_numbers_are_not():
    rounds = "The bound does not hold, see (2). ", "Thе\u200b bоund  dоes nоt\nHOLD, see (２). "
    assert evidence(f"{PROOF} {(rounds[0] + rounds[1]) * 2}{PROOF}", "phrase_loop") == [
        f". {(rounds[0] + rounds[1]) * 2}"
    ]
    listed = "".join(f"The bound does not hold, see ({n}). " for n in range(9))
    assert not rules_hit(f"{PROOF} {listed}{END}")
    same = "The bound does not hold, see (9). " * 5
    (found,) = evidence(f"{PROOF} {listed}{same}{END}", "phrase_loop")
    assert found.count("bound") == 5  # the one before it has another number


def test_a_proof_said_twice_with_nothing_between_is_a_loop_and_one_that_is_quoted_is_none():
    proof = " ".join(f"The number {n} divides {n * n}, hence the claim holds for n = {n}." for n in range(30))
    assert len(proof) > 1000
    assert rules_hit(f"{PROOF}\n{proof}\n{proof}\n{END}") == {"phrase_loop"}
    assert not rules_hit(f"The proof:\n{proof}\n\nMy check of it:\n{proof}\nEach step holds.{END}")
    assert not rules_hit(f"<think>\n\n{proof}\n\n</think>\n\n{proof}{END}")
    assert not rules_hit(f"<think>{proof}{END}</think>{proof}{END}</s>")
    assert rules_hit(f"<think>{proof}\n{proof}\n</think>{proof}{END}</s>") == {"phrase_loop"}
    assert not rules_hit(f"{PROOF}\n{proof[:500]}\n{proof[:500]}\n{END}")


def test_a_page_of_formulas_said_twice_is_a_loop():
    page = "".join(rf"\frac{{a_{{{n}}}}}{{b^2}} \le c + {n * n} d - e(f, g) \\" for n in range(40))
    assert not rules_hit(f"{PROOF}\n{page}{END}")
    assert rules_hit(f"{PROOF}\n{page}\n{page}\n{END}") == {"phrase_loop"}


# Lists, tables and code


NATURAL = {  # forty entries of each; `endless` are thousands
    "tactics": lambda n: "  simp\n" * n,
    "tactics with arguments": lambda n: "  ring_nf at h\n" * n,
    "tactics in a fence": lambda n: f"```lean\n{'norm_num' + chr(10) * 1}" + "simp at h\n" * n + "```",
    "tactics with terms": lambda n: "  nlinarith [sq_nonneg (a - b), sq_nonneg (b - c), mul_pos ha hb]\n" * n,
    "two tactics": lambda n: "  simp at h\n  ring_nf at h\n" * (n // 2),
    "decimals": lambda n: "1/7 = 0." + "142857" * n,
    "one digit": lambda n: "1/3 = 0." + "3" * 3 * n,
    "roots": lambda n: r"\sqrt{2+" * n + "x" + "}" * n,
    "continued fraction": lambda n: r"1+\cfrac{1}{" * n + "x" + "}" * n,
    "zeros": lambda n: ("0 & " * 19 + "0 \\\\\n") * n,
    "zeros without signs": lambda n: ("0 " * 40 + "\n") * n,
    "sum": lambda n: "1" + "+1" * n,
    "cases": lambda n: "\n".join(
        f"Case {i}: n = {i}. Then n^2 + n is {i * i + i}, an even number." for i in range(n)
    ),
    "the same case": lambda n: "\n".join(
        f"Case {i}: This case is done in the same way as the first." for i in range(n)
    ),
    "cases of three sentences": lambda n: "\n".join(
        f"Case {i}: the residue is {i}. Since n is odd, so is its square. So the claim holds in this case."
        for i in range(n)
    ),
    "cases in Chinese": lambda n: "\n".join(
        f"情形 {i}：n = {i}，此时 n^2 = {i * i}，结论成立。" for i in range(n)
    ),
    "terms": lambda n: ", ".join(f"a_{i} = 1" for i in range(1, n + 1)),
    "steps": lambda n: "\n".join(f"Step {i}: N/A" for i in range(n)),
    "truth table": lambda n: "\n".join(
        " | ".join(["", *("true" if i & bit else "false" for bit in (4, 2, 1)), ""]).strip() for i in range(n)
    ),
    "rows": lambda n: "\n".join(f"| {i} | correct | no issue found |" for i in range(n)),
    "equal rows": lambda n: "| the step | is correct | no issue |\n" * n,
    "ruler": lambda n: "|----+----" * n,
    "truth values": lambda n: "true, false, " * (n // 2),
}


@pytest.mark.parametrize("kind", NATURAL)
def test_forty_entries_of_a_list_a_table_or_code_are_fluent_and_thousands_are_not(kind):
    forty = NATURAL[kind](40)
    assert not rules_hit(f"{PROOF}\n{forty}\n{PROOF[:60]}{END}")
    assert not rules_hit(f"{PROOF} {forty}{END}")
    assert not rules_hit(f"{PROOF}\n{forty}")
    assert rules_hit(f"{PROOF}\n{NATURAL[kind](2000)}")


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


@pytest.mark.parametrize("size", [15, 40])
def test_a_long_proof_is_a_loop_if_a_word_changes_or_its_sentences_change_places(size):
    proof = [f"The number with the mark {chr(0x4E00 + at)} is no divisor of any other." for at in range(size)]
    rounds = [[*proof[at:], *proof[:at]] for at in (0, 7, 3, 11, 5, 9)]
    assert "sentence_loop" in rules_hit(f"{PROOF} {' '.join(chain(*rounds))}{END}")
    changed = [[*proof[:at], f"So the {word} one is.", *proof[at + 1 :]] for at, word in enumerate("abcdef")]
    assert "sentence_loop" in rules_hit(f"{PROOF} {' '.join(chain(*changed))}{END}")


@pytest.mark.parametrize("size", [4, 10, 40])
def test_a_proof_that_is_quoted_checked_and_checked_again_in_the_answer_is_fluent(size):
    proof = [f"The number with the mark {chr(0x4E00 + at)} is no divisor of any other." for at in range(size)]
    checked = "\n".join(f"{one} This step is correct." for one in proof)
    assert not rules_hit(f"{' '.join(proof)}\n\n{checked}\n</think>\n\n{checked}{END}")
    assert "sentence_loop" in rules_hit(
        f"{PROOF}</think>{' '.join(proof)}\n{checked}\n{checked}\n{checked}{END}"
    )


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


OPENINGS = (
    "We need to evaluate the proof. Let's examine each step. We must check the argument carefully. Let's "
    "read the proof again. The proof starts with n = 1, where both sides are 2.",
    "Alright, let's check the proof. First, I need to understand the problem. Let me re-read the proof. "
    "Then I should verify each step. Step 1 sets x = y.",
    "Hmm, let me check the proof again. I need to check each step. The base case n=1 holds. Let me check "
    "the next step. I should verify the whole argument. It uses P(k).",
    "So we need to check the solution. Let's check each step. Let's see if there are any errors. We "
    "should verify the proof. Part (a): the sum telescopes.",
    "Okay, so I need to figure out whether the given proof of the inequality is correct. Let me start by "
    "restating the problem in my own words. We have positive reals a, b, c with abc = 1.",
    "Let me think about the structure of the argument first, then check the algebra. The proof splits on "
    "parity. I want to check the even case.",
    "Okay, so I need to check whether this proof is right. First, I need to read the problem. Second, I "
    "should check each step. Third, I must look for gaps. The problem asks for all primes p with p + 2 "
    "prime.",
    "Okay, so we have to verify this proof. Let me read the solution carefully. Let me go through it "
    "step by step. I need to check every step. Let me start with the first step. It sets a = b + 1.",
    "Alright, I need to evaluate the solution. Let me first read the proof. Then I will check each step. "
    "Finally I will give a verdict. The claim is that n^2 + n is even.",
    "We are asked to judge a proof. So let's read the argument. We need to check each step. We should "
    "look for errors. Let's begin with the first step. By AM-GM the left side is at least 2.",
    "<think>\nOkay, let me see. I need to check this proof. Let me read the problem again. We have to "
    "decide whether the solution is correct. Let me check step by step. The triangle has angles 30, 60 "
    "and 90.",
    "- I need to read the problem.\n- I need to check each step.\n- I must look for gaps.\n- I should "
    "verify the final step.\n\nThe sum telescopes to 1 - 1/n.",
    "1. Let me check the proof.\n2. Let me verify each step.\n3. Let me look for errors.\n4. Let me see if "
    "there is a gap.\n\nStep 1 multiplies by x, which is positive.",
    "Plan:\n1. We need to examine the argument.\n2. We should check each step.\n3. We must find any gap.\n4. "
    "We will state a verdict.\nThe base case is n = 3.",
    "Let me work through this carefully. First, let me read the statement. Next, let me check the proof. "
    "I want to verify every step. Let me start with step 1. There, f is continuous on [0, 1].",
    "Let's analyze the proof. Let's go step by step. We need to verify each step. We should check for "
    "mistakes. Now, in Step 1 the author picks the smallest counterexample m.",
    "I have to check this solution. I will read the solution first. Then I will examine each step. I "
    "should find errors if there are any. The solution starts by assuming that x < y.",
    "So the problem is to show that 7 divides n. We need to check the proof. Let's evaluate the "
    "argument. We must verify each step. Let's look at the first step. It writes n = 7k + r with r < 7.",
    "We have positive reals a, b, c with abc = 1. We want a + b + c >= 3. Let me check the proof. I need "
    "to verify each step. Let me read the argument again. I should look for gaps. AM-GM gives it at once.",
    "Hmm, I need to look at this proof. Let me see the first step. Okay, I should check the whole "
    "argument. Let me verify the solution. The induction starts at n = 0, and both sides are 0.",
    "Let me think. We need to determine whether the proof is correct. Let me re-read the problem. Let me "
    "check each step. I will go through the solution. Part (b) uses part (a) with k = 2.",
    "We need to verify the given proof. The proof has three steps. We need to check each step. We should "
    "find any error. Let's read step 1. Step 1 says that sqrt(2) is irrational.",
    "First, I will check the argument. Second, I will examine each step. Third, I will look for flaws. "
    "Fourth, I will decide. The circle through A, B and C has its centre on the line l.",
    "好的，我需要检查这个证明。首先，让我仔细阅读题目。然后，我需要逐步验证每一步。让"
    "我检查有没有错误。第一步设 n = 2k，这是成立的。",
    "首先，让我们检查证明。其次，我们需要验证每一步。再次，我们应该寻找错误。最后，我"
    "们给出结论。题目要求证明 a + b >= 2。由均值不等式可得。",
    "我们先看题目。我们需要检查证明的每一步。让我检查第一步。让我检查第二步。让我检查"
    "第三步。第一步中 x > 0，因此可以除以 x。",
    "- 检查证明的第一步\n- 检查证明的第二步\n- 检查证明的第三步\n- 给出结论\n"
    "\n第一步：令 n = 2k + 1，则 n 的平方为奇数。",
    "Let me carefully read the problem and the solution. Let me check the solution. Let me examine each "
    "step. Let me see whether there is an error. Let me begin. The polynomial has degree 4.",
    "Wait, let me read the problem first. OK. I need to check the proof. Let me go through each step. I "
    "should verify the argument. We have f(x + y) = f(x) + f(y) for rational x and y.",
)


@pytest.mark.parametrize("opening", OPENINGS)
def test_an_opening_that_goes_on_to_say_something_is_fluent(opening):
    assert not rules_hit(opening)
    assert not rules_hit(opening + END)


@pytest.mark.parametrize(
    "empty",
    [
        "Let me check the proof. I need to check each step. We must find any error. Let me read the argument.",
        "Let me check the proof. I need to check each step. We must find any error. Let me read the argument. "
        "So the proof is correct.",
        f"{PROOF} So n = 4. Let me check the proof. I need to check each step. We must find an error. "
        "Let me read the argument. The sum is 3, as claimed in step 2.",
        "Let me find an error. Let me find the error. But let me find errors. I need to find an error. Here x is 2.",
        "Let me check the proof. I need to check each step. We must find any error. Let me read the argument. "
        "I should verify the solution. Let me see the first step. I will look for gaps. Let me examine the proof. "
        "Here x is 2, as claimed.",
    ],
    ids=["nothing follows", "a verdict follows", "far into the trace", "the same again", "many"],
)
def test_plans_are_empty_where_nothing_follows_or_far_into_the_trace_or_said_again(empty):
    assert "empty_announcements" in rules_hit(empty + END)


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
        "\u200b" * 300,
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
        find_anomalies(PROOF + END, [strict])


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
            "no degeneration rule 'sentense_loop'. Did you mean sentence_loop.*Available: phrase_loop",
        ),
        ({"sentence_loop": {"time": 3}}, "no threshold 'time'. Did you mean times.*Thresholds: times"),
        ({"sentence_loop": {"times": 1}}, "sentence_loop.times is 1 .*a number from 2 to inf"),
        ({"sentence_loop": {"times": "4"}}, "is '4'"),
        ({"sentence_loop": {"share": True}}, "is True"),
        ({"sentence_loop": {"times": None}}, "is None"),
        ({"sentence_loop": {"share": float("nan")}}, "is nan"),
        ({"sentence_loop": {"times": float("inf")}}, "is inf"),
        ({"sentence_loop": {"times": 10**400}}, "sentence_loop.times is 10+ "),
        (False, "rules is False; it is thresholds by rule"),
        ("none", "rules is 'none'; it is thresholds by rule"),
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
    "\u200b",
    "а",
    "１２",
    "ﷺ",
    "e\u0301",
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


def fibonacci(size):
    one, other = "a", "ab"
    while len(other) < size:
        one, other = other, other + one
    return other[:size]


def two_letters(size):
    rng = random.Random(1)
    return "".join(rng.choice("ab") for _ in range(size))


SYLLABLES = ("pro", "ver", "num", "sol", "ter", "lim", "sum", "div", "fac", "pri")


def prose(size):
    rng = random.Random(2)
    return "".join(f"{rng.choice(SYLLABLES)} {rng.choice(SYLLABLES)} " for _ in range(size // 8))[:size]


def with_a_difference(text):
    middle = len(text) // 2
    return f"{text}{text[:middle]}#{text[middle + 1 :]}"


PATHOLOGICAL = [
    *(
        pytest.param(lambda size, piece=piece: piece * (size // len(piece)), 20_000, id=repr(piece))
        for piece in [
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
            "ab",
            "e\u0301",
            "\u200b",
            "| a | b |\n",
            "1" * 299 + "x",
        ]
    ),
    pytest.param(fibonacci, 100_000, id="Fibonacci word"),
    pytest.param(two_letters, 100_000, id="two letters"),
    pytest.param(prose, 100_000, id="probes which occur everywhere"),
    pytest.param(lambda size: prose(size // 2) * 2, 100_000, id="twice"),
    pytest.param(lambda size: with_a_difference(prose(size // 2)), 100_000, id="twice but for a letter"),
    pytest.param(
        lambda size: with_a_difference(prose(2000)) * (size // 4000), 100_000, id="in each second round"
    ),
    pytest.param(
        lambda size: "".join(f"Step {n}: x = {n}. " for n in range(size // 18)), 50_000, id="counting"
    ),
]


@pytest.mark.parametrize(("make", "size"), PATHOLOGICAL)
def test_time_grows_with_the_text_and_not_with_its_square(make, size):
    def seconds(text):
        best = float("inf")
        for run in range(2):
            fresh = text + "x" * run  # what a rule remembers of a text must not serve the next
            start = time.process_time()
            find_anomalies(fresh)
            best = min(best, time.process_time() - start)
        return best

    short, long = make(size), make(4 * size)
    ratios = (seconds(long) / seconds(short) for _ in range(4))
    assert any(ratio < 8 for ratio in ratios)  # 4 if linear, 16 if quadratic
