"""Rules for characters that no fluent text has: chat markup, lost or wrongly decoded characters, a mix of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pv_rl.hookspecs import Span
from pv_rules.rule import rule
from pv_rules.text import end_of_trace

__all__ = ["broken_encoding", "chat_markup", "script_soup"]

CHAT_MARK = re.compile(
    r"<\|(?:[a-z]+(?:_[a-z]+)+|endoftext|startoftext|user|assistant|system|end|eot|pad)\|>"
    r"|<｜[^<>｜\n]{1,40}｜>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</s>"
)
CONTROL = r"\x00-\x08\x0b\x0e-\x1f\x7f"
NO_TEXT = r"\x80-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffd-\uffff\U00040000-\U000dffff"
# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then bytes 0x80 to 0xBF under either name.
TRAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
MOJIBAKE = rf"[ÂÃÎÏÐÑ][{TRAIL}]|â[{TRAIL}]{{1,2}}|ðŸ[{TRAIL}]{{1,2}}"
BROKEN_ASCII = re.compile(f"[{CONTROL}]+")
BROKEN = re.compile(f"(?:{MOJIBAKE}|[{CONTROL}{NO_TEXT}])+")

SCRIPTS = (  # Japanese is written in two of them
    ("Cyrillic", "\u0400-\u052f"),
    ("Hebrew", "\u0590-\u05ff"),
    ("Arabic", "\u0600-\u06ff"),
    ("Indic", "\u0900-\u0dff"),
    ("Thai", "\u0e00-\u0e7f"),
    ("Georgian", "\u10a0-\u10ff"),
    ("East Asian", "\u3040-\u30ff\u4e00-\u9fff"),
    ("Hangul", "\uac00-\ud7af"),
)
FOREIGN = re.compile(f"[{''.join(letters for _, letters in SCRIPTS)}]{{2,}}")
SCRIPT = re.compile("|".join(f"([{letters}])" for _, letters in SCRIPTS))


@rule(
    "marks of a chat template such as <|im_start|> with more text behind them",
    times=(1, 1, "marks of a chat template before the end"),
)
def chat_markup(text: str, times: float) -> Iterator[Span]:
    marks = [match.span() for match in CHAT_MARK.finditer(text, 0, end_of_trace(text))]
    if len(marks) >= times:
        yield from marks


@rule(
    "lost characters (U+FFFD), UTF-8 read as Latin-1, controls, surrogates, code points that are no text",
    characters=(6, 1, "broken characters in all"),
)
def broken_encoding(text: str, characters: float) -> Iterator[Span]:
    pattern = BROKEN_ASCII if text.isascii() else BROKEN
    found = [match.span() for match in pattern.finditer(text)]
    if sum(end - start for start, end in found) >= characters:
        yield from found


@rule(
    "words of many scripts in one trace",
    scripts=(3, 1, "scripts beside Latin and Greek, with two letters in a row"),
)
def script_soup(text: str, scripts: float) -> Iterator[Span]:
    if text.isascii():
        return
    found = [match.span() for match in FOREIGN.finditer(text)]
    if len({_script(letter) for letter in {text[start] for start, _ in found}}) >= scripts:
        yield from found


def _script(letter: str) -> str:
    match = SCRIPT.match(letter)
    return SCRIPTS[match.lastindex - 1][0] if match and match.lastindex else ""
