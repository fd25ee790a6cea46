"""Talk about what should be output, in the place of talk about the proof; and marks of a chat template in a trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.ending import end_of_trace
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.spans import merged
from pv_rl.rewards.degeneration.words import lowered

__all__ = ["CHAT_MARKUP", "META_COMMENTARY"]

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
ANCHORS = (
    " output",
    " respond",
    " reply",
    " verdict",
    " format",
    "true or false",
    " an ai",
    *(f"{c}###" for c in " \"'`“‘"),
)
CHAT_MARK = re.compile(
    r"<\|(?:[a-z]+(?:_[a-z]+)+|endoftext|startoftext|user|assistant|system|end|eot|pad)\|>"
    r"|<｜[^<>｜\n]{1,40}｜>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</s>"
)


def find_meta_commentary(text: str, times: float, within: float) -> Iterator[Span]:
    low = lowered(text)
    if sum(map(low.count, ANCHORS)) < times / 2:
        return
    mentions = list(MENTION.finditer(low))
    strong = [0, *accumulate(match.lastgroup is None for match in mentions)]
    yield from merged(
        (mentions[first].start(), mentions[last].end())
        for first, last in zip(range(len(mentions)), range(int(times) - 1, len(mentions)), strict=False)
        if mentions[last].end() - mentions[first].start() <= within
        and strong[last + 1] - strong[first] >= times / 2
    )


def find_chat_markup(text: str, times: float) -> Iterator[Span]:
    marks = [match.span() for match in CHAT_MARK.finditer(text, 0, end_of_trace(text))]
    if len(marks) >= times:
        yield from marks


META_COMMENTARY = DegenerationRule(
    name="meta_commentary",
    find=find_meta_commentary,
    thresholds=(
        Parameter(
            name="times", default=6, low=1, meaning="mentions of the prompt, its example or the output format"
        ),
        Parameter(name="within", default=600, low=1, meaning="characters that hold so many mentions"),
    ),
    meaning="dithering over what the prompt, its example or the format says to output",
)
CHAT_MARKUP = DegenerationRule(
    name="chat_markup",
    find=find_chat_markup,
    thresholds=(
        Parameter(name="times", default=1, low=1, meaning="marks of a chat template before the end"),
    ),
    meaning="marks of a chat template such as <|im_start|> with more text behind them",
)
