"""Truncated proof: cut so that what is left cannot be a whole proof.

A text can break off and still be right: where only a remark, a second solution, a check or a last flourish is lost. So

- only what stands before a second solution, a remark or a generalisation counts as the proof;
- of that, only what stands before the first sign that something is concluded ("as desired", a box): the claim may be
  proved there, whatever follows;
- at most half of that is kept, in steps; then the beginning of the next step, which stops in the middle of a sentence;
- a text in which the final answer has been said already is not taken;
- nor is one in a language whose words for all this are not known here: it has to be English or Chinese.
"""

from __future__ import annotations

import random
import re

from pv_data.methods.base import Unfit
from pv_data.methods.language import language_of
from pv_data.methods.reading import bare
from pv_data.methods.steps import split_steps
from pv_judge.pages.text import plural

__all__ = ["truncated"]

MIN_STEPS = 5
LANGUAGES_KNOWN = ("en", "zh")
MIN_KEPT = 60
"""Signs that are left at least."""
MIN_LOST = 300
"""Characters of the proof, before its first conclusion, that are lost at least."""
MOST_KEPT = 0.5
ANOTHER = re.compile(
    r"\b(?:second|2nd|third|another|alternat\w+|other|different)\s+(?:solution|proof|approach|method|way|argument)\b"
    r"|\b(?:solution|proof|method|approach)\s*(?:[#(]\s*)?(?:2|ii|b|two)\b|\balternatively\b|\b(?:generali[sz]ation|addendum)\b"
    r"|(?:^|\n)[^\w\n]*(?:remarks?|comments?|notes?|solution|proof)\b(?!\s*(?:1|i|a|one)\b)|另[解证一]|[解证]?法[二2]|注[:：记]",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"\bq\.?\s?e\.?\s?d\b|\\(?:blacksquare|square|qed|Box|boxed|rule)\b|[∎□■◻◼]"
    r"|\bas (?:desired|required|claimed|wanted|needed|asserted)\b"
    r"|\b(?:we are|we're|is|are) (?:now )?(?:done|complete|finished|proved|proven|established|solved)\b"
    r"|\bcomplet(?:es|ing)\b|\bfinish(?:es|ing)\b"
    r"|\b(?:hence|thus|which|this|that) (?:proves|shows|establishes|settles|implies) the\b"
    r"|\bprov(?:es|ing) (?:the|our|what)\b|\bconclu(?:de|des|ding|sion)\b|\bwhat (?:was|had) to be\b"
    r"|\bend of (?:the )?proof\b|\bfinal(?:ly)? answer\b|\bdesired (?:result|inequality|equality|conclusion)\b"
    r"|证毕|得证|综上|命题成立|证明完",
    re.IGNORECASE,
)


def truncated(proof: str, answer: str, draws: random.Random) -> str:
    """A beginning of `proof` that is no proof; raises `Unfit` where none is sure to be that.

    Args:
        proof: its text.
        answer: the problem's final answer, empty where it has none.
        draws: says where it breaks off.
    """
    whole = proof.strip()
    if language_of(whole) not in LANGUAGES_KNOWN:
        raise Unfit("language", "where a proof ends is known for English and Chinese only")
    another = next((one for one in ANOTHER.finditer(whole) if one.start() > 0), None)
    first = whole[: another.start()] if another else whole
    concluded = CONCLUDED.search(first)
    before = first[: concluded.start()] if concluded else first
    steps = split_steps(before)
    if len(steps) < MIN_STEPS:
        raise Unfit(
            "too short to cut",
            f"{plural(len(steps), 'step')} before its first conclusion; at least {MIN_STEPS}",
        )
    room = min(MOST_KEPT * len(before), len(before) - MIN_LOST)
    ends = [0]
    for step in steps:
        ends.append(ends[-1] + len(step))
    places = [
        number
        for number in range(1, len(steps) - 1)  # so that a whole step is lost behind the one that is cut
        if ends[number + 1] <= room and _broken(steps[number], 0.5) is not None
    ]
    if not places:
        raise Unfit("too short to cut", "no place leaves enough and loses enough")
    place = places[int(draws.random() * len(places))]
    share = 0.25 + 0.4 * draws.random()
    kept = "".join(steps[:place]) + (_broken(steps[place], share) or _broken(steps[place], 0.5) or "")
    if len(bare(kept)) < MIN_KEPT:
        raise Unfit("too short to cut", "what is left says nothing")
    if bare(answer) and bare(answer) in bare(kept):
        raise Unfit("answer kept", "the final answer stands in what would be left")
    return kept


def _broken(step: str, share: float) -> str | None:
    """About `share` of the step, cut before a word, so that its last sentence has no end; None where that fails."""
    at = step.rfind(" ", 0, max(1, int(share * len(step))))
    kept = step[:at].rstrip(" \t\n,;:") if at > 0 else ""
    return kept if len(kept) >= 10 and kept[-1] not in ".!?。！？$)]}" and not kept.endswith("$$") else None
