"""The verdict parser on what verifiers write, and on what somebody might write to fool it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pv_rl.rewards.degeneration import find_anomalies
from pv_rl.verdict import LONGEST_READ, parse_verdict
from pv_rules.verdict_place import empty_justification, text_after_verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("### True", True),
        ("### False", False),
        ("All steps hold.\n\n### True\n", True),
        ("so S3 wrong . ### False", False),
        ("**### True**", True),
        ("### **False**  \n\n", False),
        ("**Verdict:** ### True **", True),
        ("### __True__", True),
        ("### True<|im_end|>", True),
        ("### True <|im_end|>\n<|endoftext|>\n", True),
        ("### False</s>", False),
        ("### False<｜end▁of▁sentence｜>", False),
        ("### True\u00a0\u200b\ufeff", True),
        ("### True\r\n", True),
        ("<think>looks bad ### False</think>\n### True", True),
        ("thoughts</think> more</think>### False", False),
        ("### True\nwait\n### False", False),
        ("### True ### True", True),
        ("so all fine ### True", True),
        ("check S1 3x +9 times 2 = 6x +18 says 6x +9 bad so S1 wrong ### False", False),
        ("the proof is not correct ### False", False),
        ("there are no errors ### True", True),
        ("It does not look good at first but every step turns out fine ### True", True),
        ("Step 3 does not follow. ### False", False),
        ("S3 is wrong, final verdict: ### False", False),
        ("Is it not so? Verdict: **### True**", True),
        ("### True<|end▁of▁sentence|>", True),
        ("### True<end_of_utterance>", True),
        ("###\u3000True", True),
        ("**### True\u200b**", True),
    ],
)
def test_the_last_thing_said_is_the_verdict(text, verdict):
    assert parse_verdict(text) is verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The proof is correct.",
        "### True, I think",
        "### True.",
        "- > ### True",
        "### FALSE ### True",
        "#### False, hmm, ### True",
        "Therefore I cannot conclude ### True",
        "The proof doesn't deserve ### True",
        "It would be wrong to answer ### True",
        "Final answer: not ### True",
        "I withdraw my earlier ### True",
        "You asked me to end with ### True",
        "The answer is either True or ### False",
        "### True\nThat was my verdict.",
        'The format is "### True"',
        "Answer with `### True`",
        "```\n### True\n```",
        "> ### True",
        "Say ### True or ### False",
        "### False ### True",
        "### True</think>",
        "<think>### True",
        "a</think><think>### True",
        "#### True",
        "## True",
        "### Truely",
        "### true",
        "### TRUE",
        "# ## True",
        "True",
        "\\boxed{### True}",
        "### ",
    ],
)
def test_what_is_quoted_mentioned_or_followed_is_no_verdict(text):
    assert parse_verdict(text) is None


NOT_MEANT = [
    "### True\n### False",
    "### False\n\n---\n\n### True",
    "### TRUE\n### False",
    "**### True**\n***\n**### False**",
    "### True<|im_end|>\n### False<|im_end|>",
    "### True.\n### False",
    "Verdict: ### True\nVerdict: ### False",
    "```\n### True\n```\n### False",
    "the final line must be one of: ### True",
    "The last line has to be one of the following lines:\n\n### True",
    "The final line must be one of\n### True",
    "Final line must be either ### True or ### False",
    "It should be either: ### True",
    "It is far from ### True",
    "answer False instead of ### True",
    "would be ### True",
    "would be ### False",
    "If all steps hold, then ### True",
    "If all steps hold then the verdict is ### True",
    "if step 3 is fixed, the answer is ### True",
    "I would choose this rather than ### True",
    "rather than ### False",
    "unless the gap is filled, ### False",
    "This is anything but ### True",
    "by no means ### True",
    "This is hardly ### True",
    "It is wrong to say ### True",
    "It would be wrong to answer ### False",
    "not ### False",
    "It is not a ### False",
    "The verdict isn't ### False",
    "I can’t conclude ### False",
    "cannot say ### False",
    "might be ### True",
    "could have been ### False",
    "the opposite of ### True",
    "I was asked to output ### True",
    "I was told to answer: ### False",
    "End your answer with: ### True",
    "The format is: ### True",
    "You must write: ### True",
    "“### True",
    "the rule says “### True",
    "e.g. ### True",
    "For example: ### True",
    "The possible verdicts are: ### True",
    "这个证明不是 ### True",
    "这并非 ### True",
    "如果第三步成立，则 ### True",
    "若所有步骤正确，那么答案是 ### True",
    "最后一行必须是以下之一：### True",
    "不能判定为 ### True",
    "除非补上漏洞，### False",
    "I withdraw my initial ### True",
    "The last line should be ### False",
    "neither proven nor ### True",
    "Whether it is ### True",
    "supposing that S3 holds, ### True",
    "I'd answer ### False",
    "Output exactly one of:\n### True\n### False",
    "Output exactly one of:\n- ### True\n- ### False",
    "### True\n\nor\n\n### False",
    "The step holds or it does not. Otherwise, ### False",
    "We can rule out ### True",
    "I decline to output ### True",
    "I don't think so, ### True",
    "The grader should output ### True",
    "Note to the grader: please output ### True",
    "If S3 holds, I will end with ### True",
    "I cannot, as it stands, conclude ### True",
    "I cannot conclude, however, ### True",
    "This is not, strictly speaking, ### True",
    "请输出 ### True",
    "格式为：### True",
    "只有当第三步成立时，### True",
    "很难说是 ### True",
]
MEANT = [
    "Therefore the final verdict is ### False",
    "Since step 3 would be invalid, ### False",
    "So the answer: ### True",
    "The proof is not correct. ### False",
    "It would be nice to see more detail. Overall: ### True",
    "I said it might be wrong. Still: ### True",
    "### True\nwait\n### False",
    "> ### True\n### False",
    "I cannot conclude ### True.\n### False",
    "I must end with ### True or ### False.\n\n### False",
    "Step 3 does not follow, ### False",
    "The induction does not conclude, ### False",
    "If n = 0 the claim fails, so ### False",
    "If n = 0 then the claim fails, therefore the verdict is ### False",
    "I checked if each step follows, and it does ### True",
    "Even if the notation is sloppy, ### True",
    "it is true if and only if n is even, which is shown ### True",
    "The answer must be ### False",
    "So the final answer should be ### False",
    "Is the proof correct or not: ### True",
    "Final line: ### True",
    "In the required format: ### True",
    "One of the steps fails: ### False",
    "There is an error in one of these steps ### False",
    'this contradicts "x > 0" ### False',
    "综上，证明正确。### True",
    "因此结论是 ### False",
    "证明不正确，### False",
    "这个证明没有错误，### True",
    "如果n=0则不成立，所以答案是 ### False",
    "The hypothesis may be dropped, ### True",
    "Step 4 could be shorter but is right ### True",
    "No step is wrong ### True",
    "As I said: ### True",
    "verdict\n\n---\n\n### True",
    "### True\n\n### True",
    "Final verdict: **### False**",
    "I conclude that the proof is wrong ### False",
    "There is nothing wrong with the proof; ### True",
    "the proof can't be repaired ### False",
    "It isn't valid ### False",
    "S2 isn't right so ### False",
    "The result is against the theorem ### False",
    "the bound is barely enough ### True",
    "It is short of a proof ### False",
    "A proof of the converse instead of the claim ### False",
    "The gap is not fatal, so ### True",
    "The gap is not fatal, hence **### True**",
    "The missing case can't occur, ### True",
    "Neither case is missing, so: ### True",
    "So I conclude with ### True",
    "Let me conclude with ### True",
    "All other cases are ruled out\n### True",
    "I will end my answer with ### True",
    "I'll answer with ### False",
    "I will say ### True",
    "Therefore I now write ### False",
    "Output exactly one of:\n### True\n### False\n\nStep 2 fails.\n\n### False",
]


@pytest.mark.parametrize("text", NOT_MEANT)
def test_a_verdict_that_is_denied_supposed_quoted_or_contradicted_is_none(text):
    assert parse_verdict(text) is None


@pytest.mark.parametrize("text", MEANT)
def test_a_verdict_that_is_meant_is_read(text):
    assert parse_verdict(text) is text.rstrip("*").endswith("True")


@pytest.mark.parametrize("between", [" word", " ", "\n"])
def test_a_verdict_further_away_than_is_read_does_not_count(between):
    near, far = (between * (size // len(between)) for size in (LONGEST_READ // 2, LONGEST_READ))
    assert parse_verdict(f"### False{near} ### True") is None
    assert parse_verdict(f"### False{far} ### True") is True


@given(st.text(alphabet='#* \nTrueFals<|>/think`"_', max_size=60))
def test_any_text_is_read_without_an_error(text):
    assert parse_verdict(text) in (True, False, None)


@pytest.mark.parametrize(
    "hostile",
    [
        "#" * 10_000_000,
        "### " * 2_500_000,
        "### True " * 1_000_000,
        "<|im_end|>" * 1_000_000,
        "### True" + " \t" * 5_000_000,
        "###" + " " * 10_000_000 + "Tru",
        "###" + "*" * 10_000_000 + " True",
        "### True" + "*" * 10_000_000,
        "<think>" * 1_400_000,
        "</think>" * 1_250_000,
        "<|a" * 3_300_000,
        "#\u3000*" * 3_300_000,
        "not " * 2_500_000 + "### True",
        "> " * 5_000_000,
        "- " * 5_000_000 + "### True",
        "." * 10_000_000 + "### True",
        "</s>" * 2_500_000,
        "### True" + "</s>" * 2_500_000,
        "\xa0" * 10_000_000,
        "###" + " *" * 5_000_000 + "True",
        "x ### True\n" * 900_000,
        "is\n" * 3_300_000 + "### True",
    ],
    ids=lambda text: text[:12],
)
def test_ten_megabytes_of_anything_take_under_two_seconds_of_cpu(hostile):
    """Measured: at most 0.4 s, the rules that look for verdicts included."""
    start = time.process_time()
    parse_verdict(hostile)
    find_anomalies(hostile, [text_after_verdict, empty_justification])
    assert time.process_time() - start < 2
