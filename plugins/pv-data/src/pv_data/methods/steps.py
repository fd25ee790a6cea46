"""Step splitter: cuts a proof at the ends of sentences and paragraphs, never in a formula, an environment or a list.

The steps joined are the text, character for character. Takes time linear in the text: it is untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["protected", "split_steps"]

MIN_SIGNS = 40
"""Signs that are not white space which a step has at least; a shorter one, a heading for example, joins the next."""
MATH = re.compile(r"\\\\|\\\$|\\begin\{(?P<env>[^{}\n]{1,40})\}|\\\[|\\\(|\$\$|\$|```|~~~")
CLOSERS = {
    "\\[": re.compile(r"\\\]"),
    "\\(": re.compile(r"\\\)"),
    "$$": re.compile(r"(?<!\\)\$\$"),
    "$": re.compile(r"(?<!\\)\$|\n[^\S\n]*\n"),
    "```": re.compile(r"```"),
    "~~~": re.compile(r"~~~"),
}
BRACE_OR_GAP = re.compile(r"\\.|[{}]|\n[^\S\n]*\n", re.DOTALL)
ITEM = re.compile(r"[^\S\n]*(?:[-*+•]|\d{1,3}[.)]|\([a-z0-9]{1,4}\))[^\S\n]+\S|\\item\b")
PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
SENTENCE = re.compile(r"[.!?][)\"'”’*_]*\s+|[。！？][”’）]*\s*")
STARTS = re.compile(r"[A-Z0-9$\\(\[“\"*#>㐀-鿿Ѐ-Я]")
DISPLAY = re.compile(r"\$\$|\\\[|\\begin\{")
ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|viz|resp|eqs?|figs?|thm|lem|prop|cor|def|nos?|sec|ch|pp?|mr|mrs|dr|st|w\.l\.o\.g|wlog|w\.r\.t"
    r"|s\.t|etc|approx|ex)|\b[A-Za-z]|(?:\A|\n)[^\S\n]*\d{1,3})\Z",
    re.IGNORECASE,
)
ENDS_SENTENCE = re.compile(r"[.!?。](?:\s*(?:\\end\{[^{}\n]{1,40}\}|\\[\])]|\$\$?)){1,4}\Z")
GAP = re.compile(r"\s+")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
INSIDE = re.compile(r"[^\n]")


def split_steps(text: str) -> list[str]:
    """The steps; `"".join` of them is `text`. White space between two of them belongs to the first.

    Example: `split_steps(a + " " + b)` is `[a + " ", b]` for sentences of 40 signs or more that end with a full stop.
    """
    spans = protected(text)
    cuts = sorted(set(_cuts(text, spans)))
    steps: list[str] = []
    start = 0
    for cut in [*cuts, len(text)]:
        if cut == len(text) or _signs(text[start:cut]) >= MIN_SIGNS:
            if cut > start:
                steps.append(text[start:cut])
            start = cut
    if len(steps) > 1 and _signs(steps[-1]) < MIN_SIGNS:
        steps[-2:] = ["".join(steps[-2:])]
    return steps


def protected(text: str) -> list[tuple[int, int]]:
    """The stretches `(start, end)` that hold together: formulas, environments, code, braces and lists, in order."""
    math = list(_math(text))
    return _union([*math, *_braces(text, math), *_lists(text, math)])


def _math(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := MATH.search(text, at):
        at = found.end()
        opener = found[0]
        if found["env"] is not None:
            at = _environment_end(text, found["env"], at)
        elif opener in CLOSERS:
            closer = CLOSERS[opener].search(text, at)
            if closer is None and opener in ("$", "```", "~~~"):
                continue
            if closer is not None and closer[0].startswith("\n"):  # a dollar sign, and no formula
                continue
            at = closer.end() if closer else len(text)  # broken LaTeX: nobody knows where it ends
        else:
            continue
        yield found.start(), at


def _environment_end(text: str, name: str, at: int) -> int:
    depth = 1
    for mark in re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}").finditer(text, at):
        depth += 1 if mark[1] == "begin" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _braces(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    outside = _blanked(text, spans)
    opened: list[int] = []
    for found in BRACE_OR_GAP.finditer(outside):
        if found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            start = opened.pop()
            if not opened:
                yield start, found.end()
        elif found[0].startswith("\n"):
            opened.clear()


def _lists(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lists in Markdown: from their first item to the blank line before the next text that is no item."""
    outside = _blanked(text, spans, keep_lines=True)
    start: int | None = None
    end = 0
    blank = True
    for found in LINE.finditer(text):
        line = found[0]
        if not line.strip():
            blank = True
            continue
        if ITEM.match(outside, found.start()):
            start = found.start() if start is None else start
        elif start is not None and blank and not line[0].isspace():
            yield start, end
            start = None
        end, blank = found.end(), False
    if start is not None:
        yield start, end


def _cuts(text: str, spans: list[tuple[int, int]]) -> Iterator[int]:
    outside = _blanked(text, spans)
    for found in PARAGRAPH.finditer(outside):
        rest = text[found.end() : found.end() + 8]
        if rest and not DISPLAY.match(rest) and not rest[0].islower():
            yield found.end()
    for found in SENTENCE.finditer(outside):
        before = text[max(0, found.start() - 12) : found.start()]
        wide = found[0][0] in "。！？"
        if wide or (STARTS.match(text, found.end()) and not ABBREVIATED.search(before)):
            yield found.end()
    for _, end in spans:
        gap = GAP.match(text, end)
        if gap and ENDS_SENTENCE.search(text[max(0, end - 60) : end]) and STARTS.match(text, gap.end()):
            yield gap.end()


def _blanked(text: str, spans: list[tuple[int, int]], keep_lines: bool = False) -> str:
    """The text with each span written over by as many `x`, so that nothing in it looks like the end of a step."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], INSIDE.sub("x", text[start:end]) if keep_lines else "x" * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _signs(text: str) -> int:
    return len(text) - sum(character.isspace() for character in text)
