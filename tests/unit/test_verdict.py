"""The verdict parser on what verifiers write, and on what somebody might write to fool it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pv_rl.verdict import parse_verdict


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
    ],
    ids=lambda text: text[:12],
)
def test_ten_megabytes_of_anything_take_linear_time(hostile):
    """A quadratic reading takes hours here; the bound only has to tell the two apart on a slow machine."""
    start = time.perf_counter()
    parse_verdict(hostile)
    assert time.perf_counter() - start < 30
