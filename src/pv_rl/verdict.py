"""The verifier's final verdict, read from its trace.

A trace is untrusted text of any length, so the reading looks at the last line only and takes linear time.
"""

from __future__ import annotations

import re

__all__ = ["end_of_trace", "parse_verdict"]

BLANK = r"[^\S\r\n]"
# One run of blanks and bold marks, not several optional ones: a run that can be cut in two ways is quadratic.
VERDICT = re.compile(rf"(?<!#)###(?:{BLANK}|[*_])*(?P<word>True|False)(?![^\W_])")
# Whatever looks like a verdict, in any spelling, may contradict the one at the end.
LOOKALIKE = re.compile(rf"#(?:{BLANK}|[*_])*(?P<word>true|false)(?![^\W_])", re.IGNORECASE)
QUOTED_LINE = re.compile(r"[\s*+\-]*>")
# A verdict right behind one of these is talked about; a True that is denied within five words is no acceptance.
MENTION = re.compile(r"\b(?:or|with|than|earlier|says?|said|saying|write|writing)\W*\Z", re.IGNORECASE)
DENIAL = re.compile(r"(?:\b(?:not|cannot|never|neither|nor|would)|n['’]t)\b", re.IGNORECASE)
DENIAL_WORDS = 5
CLAUSE_END = re.compile(r"[.!?:;]")
# Marks that tokenizers leave behind a text: ChatML, Llama, DeepSeek (with full-width bars), SentencePiece.
END_OF_TEXT = re.compile(
    r"(?:<\|[\w▁ ]{1,40}\|>|<｜[^<>｜]{1,40}｜>|</s>|<eos>|<pad>|<end_of_\w{1,20}>|\[EOS\])\Z"
)
BOLD = "*_"
INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\x00"


def parse_verdict(text: str) -> bool | None:
    """Return the verdict that `text` ends with, or None.

    A verdict is `### True` or `### False`, spelled so, as the last thing of the last line that is not blank:

    - after the last `</think>`; a `<think>` that is never closed has no verdict in it (where the chat template
      puts `<think>` into the prompt, a response that is cut off in its thoughts shows neither mark);
    - bold around it or in it (`**### True**`, `### **True**`), white space and end-of-text marks such as
      `<|im_end|>` behind it do not matter; any other character behind it does, a quotation mark or a code
      fence included, so that a quoted verdict is none, nor is one on a line quoted with `>`;
    - other words may stand before it on its line (`so S3 is wrong ### False`), unless they mention it (`you asked
      me to end with ### True`) or, in the five words before a True, deny it (`I cannot conclude ### True`);
    - other verdicts on its line have to agree with it, in whatever spelling (`### FALSE ### True` is none);
      those on earlier lines do not count.

    In doubt it is None: a missing verdict is counted, a wrong one is paid.

    Example: `parse_verdict("Step 2 is wrong.\\n**### False**<|im_end|>")` is False.

    Args:
        text: the trace, any length. Takes time linear in it.
    """
    line = _last_line(_after_thinking(text))
    found = list(VERDICT.finditer(line))
    if not found or line[found[-1].end() :].strip(BOLD + INVISIBLE + " \t\xa0") or QUOTED_LINE.match(line):
        return None
    words = {match["word"].lower() for match in LOOKALIKE.finditer(line)}
    before = _clause_before(line, found[0].start())
    accepts = words == {"true"}
    if len(words) > 1 or MENTION.search(before) or (accepts and DENIAL.search(before)):
        return None
    return accepts


def _after_thinking(text: str) -> str:
    close = text.rfind("</think>")
    rest = text[close + len("</think>") :] if close >= 0 else text
    return "" if "<think>" in rest else rest


def end_of_trace(text: str) -> int:
    """The offset behind the last character that is neither white space nor part of an end-of-text mark."""
    end = len(text)
    while True:
        while end > 0 and (text[end - 1].isspace() or text[end - 1] in INVISIBLE):
            end -= 1
        mark = END_OF_TEXT.search(text, max(0, end - 60), end)
        if mark is None:
            return end
        end = mark.start()


def _last_line(text: str) -> str:
    """The last line that is not blank, without what may follow a verdict."""
    end = end_of_trace(text)
    start = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
    return text[start:end]


def _clause_before(line: str, end: int) -> str:
    """The last words before `end`, back to punctuation at most."""
    clause = CLAUSE_END.split(line[max(0, end - 400) : end])[-1]
    return " ".join(clause.split()[-DENIAL_WORDS:])
