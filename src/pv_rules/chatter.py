"""Rules for text that is not about the proof: empty plans, self-interruptions, talk about the prompt and the format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from pv_rl.hookspecs import Span
from pv_rules.rule import rule
from pv_rules.text import lowered, merged, word_set

__all__ = ["empty_announcements", "meta_commentary", "self_interruption"]

PLAN_ANCHORS = ("let", "need", "have to", "should", "must", "will")
BREAK = re.compile(r"[.!?](?=\s)|\n")  # not the point in 2.5
PLAN = re.compile(
    r"\s*(?:(?:but|and|so|now|then|first|again|ok|okay|well|wait|hmm|actually|next|also|still|however)\b[\s,…]*)*"
    r"(?:let(?:'s|’s| me| us)|(?:i|we) (?:need to|have to|should|must|will|want to|can|could|am going to|are going to)"
    r")\b"
)
OBJECT = re.compile(
    r"\b(?:errors?|mistakes?|flaws?|gaps?|issues?|problems?|proof|solution|argument|steps?|goes wrong)\b"
)
GENERIC = word_set(
    """a about again all also an analyse analyze and another any argument at be begin but by can careful carefully
    check checking consider correct could detail details determine do double each entire error errors evaluate every
    examine false find first flaw flaws for from gap gaps give go goes going has have here hmm how i identify if in
    incorrect inspect into invalid is issue issues it it's its just let let's line locate logical look make me might
    mistake mistakes more must need next now of ok okay on once one or out over own problem problems proceed proof
    read really reread review right see search should so solution some start statement step steps still sure text
    that the then there this through to try us valid validity verify verdict wait want was we well what where
    whether which whole will with work wrong"""
)
LONGEST_GAP = 240  # characters between two plans
WORDS = re.compile(r"[\w'’]+")
OWN_WORDS = 2  # not generic ones: the sentence says something
OPENING = 3  # such sentences; behind fewer a thinking model says what it will do, and then does it
DIFFERENT = 0.75  # of the plans of an opening have an aim of their own
ACTION = re.compile(
    r"\b(?:analy[sz]e|check|consider|correct|determine|evaluate|examine|find|go|identify|inspect|locate|look|proceed"
    r"|read|reread|review|see|search|start|try|verify)\b"
)


@rule(
    "plans to find an error or to verify the proof, again and again, with hardly anything between",
    times=(4, 2, "plans without content"),
    between=(1, 0, "other sentences between two plans, at most"),
)
def empty_announcements(text: str, times: float, between: float) -> Iterator[Span]:
    """Thinking models open with plans too. An opening is an outline of different plans, fewer than twice `times`, in
    the first sentences of a trace that goes on to say something. Elsewhere a chain of plans is empty.
    """
    low = lowered(text)
    if sum(map(low.count, PLAN_ANCHORS)) < times:
        return
    sentences = list(_sentences(low))
    spans = [(start, start + len(sentence)) for start, sentence in sentences]
    plans = [_is_plan(sentence) for _, sentence in sentences]
    for first, last in _chains(spans, plans, between):
        aims = [_aim(sentences[at][1]) for at in range(first, last + 1) if plans[at]]
        if len(aims) < times:
            continue
        said = (at for at in range(len(plans)) if not plans[at] and _says_something(sentences[at][1]))
        before = list(islice(said, OPENING))
        opening = len(before) < OPENING or before[-1] > first
        outline = len(aims) < 2 * times and len(set(aims)) >= DIFFERENT * len(aims)
        if not (opening and outline and any(at > last for at in (*before, *said))):
            yield spans[first][0], spans[last][1]


def _chains(spans: Sequence[Span], plans: Sequence[bool], between: float) -> Iterator[tuple[int, int]]:
    """The first and the last sentence of plans that are nearly back to back."""
    numbers = [number for number, plan in enumerate(plans) if plan]
    first = 0
    for at, number in enumerate(numbers):
        following = numbers[at + 1] if at + 1 < len(numbers) else len(plans) + int(between) + 1
        if following - number > between + 1 or spans[following][0] - spans[number][1] > LONGEST_GAP:
            yield numbers[first], number
            first = at + 1


def _aim(plan: str) -> tuple[str, ...]:
    """What is to be done to what, in two words."""
    found = ACTION.search(plan), OBJECT.search(plan)
    return tuple(match[0].rstrip("s") for match in found if match)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Where a sentence starts, and the sentence without white space around it."""
    at = 0
    for stop in (*(match.end() for match in BREAK.finditer(text)), len(text)):
        sentence = text[at:stop]
        if stripped := sentence.strip(" \t\r\n.!?"):
            yield at + sentence.find(stripped), stripped
        at = stop


def _is_plan(sentence: str) -> bool:
    """It names an object (an error, the proof), and nothing of its own."""
    return (
        len(sentence) <= 120
        and PLAN.match(sentence) is not None
        and OBJECT.search(sentence) is not None
        and GENERIC.issuperset(WORDS.findall(sentence))
    )


def _says_something(sentence: str) -> bool:
    return sum(word not in GENERIC for word in WORDS.findall(sentence)) >= OWN_WORDS


STEMS = ("wait", "hmm", "hold on", "actually", "let me", "let us see", "let's see")
MARKER = re.compile(r"\b(?:wait|hmm+|hold on|actually|let me|let us see|let's see)\b", re.IGNORECASE)
CRUMB = re.compile(r"\w+(?:['’]\w+)?")
FILLER = word_set(
    """a about again am an and at but careful check correct do double first go i i'll i'm if is isn't it it's just look
    maybe me minute moment more need no not now oh ok okay on once one or perhaps re recheck reconsider right rethink
    second see so sorry sure that that's the then think this to uh um verify well what yes"""
)
BETWEEN = 60  # characters from one interruption to the next


@rule(
    "wait, no, hmm, let me see: a chain of interruptions with nothing between them",
    times=(10, 2, "interruptions in a row"),
    crumbs=(2, 0, "words with content between two interruptions, at most"),
)
def self_interruption(text: str, times: float, crumbs: float) -> Iterator[Span]:
    low = text.lower()
    if sum(map(low.count, STEMS)) < times:
        return
    start, end, count = 0, -BETWEEN - 1, 0
    for match in MARKER.finditer(text):
        if match.start() - end > BETWEEN or _said(text[end : match.start()]) > crumbs:
            if count >= times:
                yield start, end
            start, count = match.start(), 0
        end, count = match.end(), count + 1
    if count >= times:
        yield start, end


def _said(gap: str) -> int:
    """Words with content in a piece of text."""
    return sum(word.lower() not in FILLER for word in CRUMB.findall(gap))


SAYS = r"(?:says?|said|asks?|asked|wants?|writes?|wrote|shows?|states?|requires?|tells?|told)"
PROMPT = r"(?:user(?:'s|’s)?(?: message| prompt)?|system prompt|system message|prompt|instructions?|template)"
HASHES = r"[\"'`“‘]*###(?!#)"
# The prompt or its example, in group `weak`: a proof has examples too. The rest is about what to output.
MENTION = re.compile(
    rf"(?P<weak>\b{PROMPT} {SAYS}\b|\bin (?:the|my) (?:initial |given |sample )?(?:{PROMPT}|examples?|sample|output)\b)"
    rf"|\b{SAYS} (?:(?:me|us|that|to|the|it|we|i|you|should|must|simply|only|just|put|write|end|with|[\"'`“‘*]+) )*"
    rf"(?:(?:output|respond|reply|verdict|final line|final verdict|true or false)\b|{HASHES})"
    r"|\b(?:need|have|supposed|must|should|required|want|going) (?:to )?(?:only |just |then |also )?"
    rf"(?:output|respond|reply|(?:put|write|print|end with) (?:the (?:final )?verdict\b|{HASHES}))"
    r"|\b(?:output|required|expected|response|answer|verdict|requested|specified) format\b"
    r"|\bas an ai (?:language )?(?:model|assistant)\b|\bi(?: am|'m|’m) an ai\b"
)
# Nearly every mention that is not weak has one of these.
MENTION_ANCHORS = (
    " output",
    " respond",
    " reply",
    " verdict",
    " format",
    "true or false",
    " an ai",
    *(f"{c}###" for c in " \"'`“‘"),
)


@rule(
    "dithering over what the prompt, its example or the format says to output",
    times=(6, 1, "mentions of the prompt, its example or the output format"),
    within=(600, 1, "length of the passage with that many mentions, in characters"),
)
def meta_commentary(text: str, times: float, within: float) -> Iterator[Span]:
    low = lowered(text)
    if sum(map(low.count, MENTION_ANCHORS)) < times / 2:
        return
    mentions = list(MENTION.finditer(low))
    strong = [0, *accumulate(match.lastgroup is None for match in mentions)]
    yield from merged(
        (mentions[first].start(), mentions[last].end())
        for first, last in zip(range(len(mentions)), range(int(times) - 1, len(mentions)), strict=False)
        if mentions[last].end() - mentions[first].start() <= within
        and strong[last + 1] - strong[first] >= times / 2
    )
