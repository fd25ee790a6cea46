"""Every parser of untrusted text takes time linear in it: each is timed on hostile texts of growing size.

A text is timed once at each size. Only where that takes longer than a linear parser usually does, it is timed again, at
this size and at a quarter of it, the best of three runs each, in CPU time: from one to the other the time of a linear
parser grows by 4, of a quadratic one by 16. A test fails where it has grown by more than 8, three times in a row.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from pattern_attacks import Used, attacks, patterns

import pv_data
import pv_eval
import pv_judge
import pv_rl
import pv_rules
import pv_runs
import pv_verdicts
from pv_data.audit.mathml import to_html
from pv_data.duplicates.blind import features
from pv_data.duplicates.shingles import normalised
from pv_data.filters import words_of_geometry, words_only
from pv_data.labels.check import parse_check
from pv_data.methods.base import Unfit
from pv_data.methods.language import language_of
from pv_data.methods.masking import masked
from pv_data.methods.reading import bare, body_of, refuse
from pv_data.methods.steps import split_steps
from pv_data.methods.truncation import truncated
from pv_data.sources import latex
from pv_data.sources.reading.rows import read_rows
from pv_data.sources.reading.tex_names import said_by_title
from pv_data.sources.reading.tex_openings import said_by_body, shortcoming
from pv_eval.report.passage import find_passage
from pv_judge.answer import JudgeFailure
from pv_judge.completion import RequestFailed, read_completion
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.http import retry_after_s
from pv_judge.override import quoted
from pv_judge.pages.text import markdown, natural, one_line, plain
from pv_rl.errors import PvRlError
from pv_rl.losses.mode import resolve_mode
from pv_rl.rewards.degeneration import BUILTIN_RULES, apply_rule
from pv_rl.verdict import end_of_trace, parse_verdict
from pv_verdicts.meta_verifier import MetaVerifier

MOST_GROWTH = 8


def growth(
    parse: Callable[[str], object], before: str, body: str, after: str, size: int, usual_s: float = 0.006
) -> float:
    """By how much more time four times the text takes; 0 where it takes at most `usual_s`, or grows like the text."""
    extra = itertools.count()  # texts differ, since some parsers remember

    def seconds(size: int) -> float:
        text = before + body * (size // len(body) + next(extra) % 7) + after
        start = time.process_time()
        parse(text)
        return time.process_time() - start

    for part in (size // 16, size // 4, size):
        for again in (True, True, False):
            if seconds(part) < usual_s:
                break
            small, large = (min(seconds(one) for _ in range(3)) for one in (part // 4, part))
            if large <= MOST_GROWTH * small:
                break
            if large > 1 or not again:
                return large / small
    return 0


# Patterns


def run(used: Used) -> Callable[[str], object]:
    """Apply a pattern as its package does: at every place, or at the beginning."""

    def apply(text: str) -> None:
        if used.scans:
            deque(used.pattern.finditer(text), maxlen=0)
        else:
            used.pattern.match(text)
            used.pattern.fullmatch(text)

    return apply


def faults(used: Used) -> Iterator[str]:
    pattern = used.pattern
    if isinstance(pattern.pattern, bytes):
        used = Used(re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.UNICODE), used.scans)
    for before, body in sorted(attacks(used.pattern)):
        if factor := growth(run(used), before, body, "\x01", 4096):
            yield f"{before!r} + {body!r} * n: {factor:.0f}"
            return


FOUND = patterns(pv_rl, pv_rules, pv_judge, pv_runs, pv_verdicts, pv_data, pv_eval)


def test_every_pattern_of_our_packages_is_linear():
    assert len(FOUND) > 180
    wrong = {name: fault for name, used in FOUND.items() for fault in faults(used)}
    assert wrong == {}


@pytest.mark.parametrize(
    "pattern",
    [
        re.compile(
            r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL
        ),  # the reader of a judge's answer had this one
        re.compile(r"(?:^|\n)\W*remarks?\b"),
        re.compile(r"\\\(.*?\\\)"),
    ],
)
def test_a_pattern_that_backtracks_is_found(pattern):
    assert list(faults(Used(pattern, True)))


# Parsers

BODIES = (
    *("a", "a ", "A. ", "word. ", "9", "9,", "0.", "_", "中", "。", "é", "\x00", "\ud800", "İ"),
    *(" ", "\t", "\n", "\r\n", "\n \n", "\xa0", "\u3000", "\u200b", "\n\n", " \n"),
    *(
        ".",
        "!",
        ",",
        ":",
        ";",
        "-",
        "--",
        "=",
        "|",
        "<",
        ">",
        "@",
        "/",
        "'",
        '"',
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "{}",
    ),
    *(
        "#",
        "###",
        "### ",
        "###*",
        "### True ",
        "### True\n",
        "x ### True\n",
        "### False, ",
        "#### 1\n",
        "# a\n",
    ),
    *("*", "**", "~", "~~~\n", "`", "```", "```\n", "```json\n", "\n```\n", "> ", "- a\n", "1. a\n", "(a) "),
    *("\\", "\\\\", "$", "$$", "$a", "\\$", "\\(", "\\)", "\\[", "\\]", "\\a", "\\a{", "^", "%\n", "&"),
    *(
        "\\begin{a}",
        "\\end{a}",
        "\\begin{proof}",
        "\\begin{problem}a\\end{problem}",
        "\\item[A1] a\n",
        "\\ref{",
    ),
    *(
        "\\section{Problem 1}\n",
        "\\begin{solution}b\\end{solution}\n",
        "\\label{a}",
        "\\textbf{",
        "\\frac{1}{",
    ),
    *("<think>", "</think>", "<|im_end|>", "<|a", "</s>", "<<", "<end_of_", "[EOS]", "<｜a"),
    *("if ", "if a, ", "not ", "would be ", "one of ", "如果", "wait, ", "says to output ", "let me check. "),
    *(
        "proof ",
        "solution 1 ",
        "solution ",
        "remark\n",
        "triangle ",
        "side ",
        "of the ",
        "problem 1 ",
        "QED ",
    ),
    *(
        '{"a":',
        "[[",
        '{"proof_correct": true}\n',
        '"a",',
        '\\"',
        "\\u0041",
        "1e9",
        "-",
        "[[gap 1 of ",
        "sk-",
        "key=",
    ),
    *("step 1 is so. step 2 is so. ", "the same sentence again. ", "://a:", "www.", "http://"),
)
AROUND = (("", ""), ("```json\n", "x"), ("### ", "True"), ('{"a": "', '"}'), ("$ \\begin{a} \\(", "\n\nx"))
AROUND_LATEX = (("", ""), ("\\begin{problem}", "\\end{problem}"))
PROOF = "\n\n".join(
    f"Therefore step {number} holds, since x = {number} is what we have shown." for number in range(6)
)
MASKED = masked(PROOF, share=0.3, seed=1)


def completion(text: str) -> object:
    return read_completion(json.dumps({"choices": [{"message": {"content": text}}]}).encode(), 1)


def rows(read: Callable[..., Iterator[object]], suffix: str) -> Callable[[str], object]:
    def parse(text: str) -> object:
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            return list(read(Path(file.name)))

    return parse


PARSERS: dict[str, Callable[[str], object]] = {
    "a verdict": parse_verdict,
    "the end of a trace": end_of_trace,
    "the points of a trace": pv_verdicts.build_format("grade").read,
    "the first wrong step of a trace": pv_verdicts.build_format("first_error").read,
    **{f"the rule {rule.name}": partial(apply_rule, rule) for rule in BUILTIN_RULES},
    "a trace for the judge": FluencyPrompt.load().messages,
    "a judge's answer": parse_fluency,
    "a meta-verifier's answer": MetaVerifier.parse,
    "the body of a completion": completion,
    "bytes that are no completion": lambda text: read_completion(text.encode("utf-8", "replace"), 1),
    "Retry-After": lambda text: retry_after_s(text, 0),
    "a loss mode": resolve_mode,
    "text for a report": lambda text: (markdown(plain(text)), markdown(text), natural(text)),
    "text for the terminal": one_line,
    "a value for Hydra": quoted,
    "a grade": parse_check,
    "a model's proof": body_of,
    "a refusal": refuse,
    "bare text": bare,
    "filled gaps": MASKED.read,
    "steps": split_steps,
    "a truncated proof": lambda text: truncated(PROOF + text, "", random.Random(1)),
    "a language by its words": language_of,
    "words without LaTeX": words_only,
    "words of geometry": words_of_geometry,
    "tokens of a problem": normalised,
    "features of a problem": features,
    "a passage": find_passage,
    "a text with formulas": to_html,
    "the title of a solution": lambda text: said_by_title(text, ()),
    "the first words of a solution": lambda text: (said_by_body(text), shortcoming(text, text)),
    "a LaTeX file": rows(latex.read, ".tex"),
    "JSON lines": rows(read_rows, ".jsonl"),
    "CSV": rows(read_rows, ".csv"),
}
SLOW: dict[str, tuple[int, float]] = {
    "a LaTeX file": (4096, 0.06),
    "a truncated proof": (2048, 0.006),
    "a text with formulas": (8192, 0.06),
    **dict.fromkeys(("JSON lines", "CSV", "features of a problem"), (4096, 0.03)),
    **dict.fromkeys(
        (
            *("text for a report", "text for the terminal", "steps", "a passage"),
            *(
                "a language by its words",
                "words of geometry",
                "the title of a solution",
                "the first words of a solution",
                "tokens of a problem",
            ),
        ),
        (4096, 0.006),
    ),
}
"""Size, and seconds that it may take without being looked at again."""


@pytest.mark.parametrize("parser", PARSERS)
def test_every_parser_of_untrusted_text_is_linear(parser):
    def parse(text: str) -> None:
        with suppress(PvRlError, Unfit, JudgeFailure, RequestFailed):
            PARSERS[parser](text)

    is_latex = parser == "a LaTeX file"
    wrong = {
        (before, body, after): factor
        for body in BODIES
        for before, after in (AROUND_LATEX if is_latex else AROUND)
        if "\\" in body or not is_latex
        if (factor := growth(parse, before, body, after, *SLOW.get(parser, (16_384, 0.006))))
    }
    assert wrong == {}
