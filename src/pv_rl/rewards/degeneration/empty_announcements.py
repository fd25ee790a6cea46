"""Let me find the errors. But I need to verify the proof. Let me find one error: plans that nothing follows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.words import lowered, word_set

__all__ = ["EMPTY_ANNOUNCEMENTS"]

ANCHORS = ("let", "need", "have to", "should", "must", "will")
SENTENCE = re.compile(r"[^.!?\n]+")
PLAN = re.compile(
    r"\s*(?:(?:but|and|so|now|then|first|again|ok|okay|well|wait|hmm|actually|next|also|still|however)\b[\s,…]*)*"
    r"(?:let(?:'s|’s| me| us)|(?:i|we) (?:need to|have to|should|must|will|want to|can|could|am going to|are going to)"
    r")\b"
)
OBJECT = re.compile(
    r"\b(?:errors?|mistakes?|flaws?|gaps?|issues?|problems?|proof|solution|argument|steps?)\b"
)
GENERIC = word_set(
    """a about again all also an analyse analyze and another any argument at be begin but by can careful carefully check
    checking consider correct could detail details determine do double each entire error errors evaluate every examine
    false find first flaw flaws for from gap gaps give go going has have hmm how i identify if in incorrect inspect into
    invalid is issue issues it it's its just let let's line locate logical look make me might mistake mistakes more must
    need next now of ok okay on once one or out over own problem problems proceed proof read really reread review right
    see search should so solution some start statement step steps still sure text that the then there this through to
    try us valid validity verify verdict wait want was we well what where whether which whole will with work wrong"""
)
LONGEST_GAP = 240  # characters between two plans


def find_empty_announcements(text: str, times: float, between: float) -> Iterator[Span]:
    low = lowered(text)
    if sum(map(low.count, ANCHORS)) < times:
        return
    start, end, count, others = 0, 0, 0, 0
    for match in SENTENCE.finditer(low):
        sentence = match[0]
        if not sentence.strip():
            continue
        if not (PLAN.match(sentence) and _is_empty(sentence)):
            others += 1
            continue
        if others > between or match.start() - end > LONGEST_GAP:
            if count >= times:
                yield start, end
            start, count = match.start() + len(sentence) - len(sentence.lstrip()), 0
        end, count, others = match.end(), count + 1, 0
    if count >= times:
        yield start, end


def _is_empty(plan: str) -> bool:
    """It names an object (an error, the proof), and nothing of its own."""
    return (
        len(plan) <= 120
        and OBJECT.search(plan) is not None
        and GENERIC.issuperset(re.findall(r"[\w'’]+", plan))
    )


EMPTY_ANNOUNCEMENTS = DegenerationRule(
    name="empty_announcements",
    find=find_empty_announcements,
    thresholds=(
        Parameter(name="times", default=4, low=2, meaning="plans without anything of their own"),
        Parameter(name="between", default=1, low=0, meaning="other sentences between two of them at most"),
    ),
    meaning="plans to find an error or to verify the proof, again and again, with hardly anything between",
)
