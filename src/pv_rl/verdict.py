"""The verifier's final verdict, read from its trace.

A trace is untrusted text of any length, so the reading looks at the last line only and takes linear time.
"""

from __future__ import annotations

import re

__all__ = ["parse_verdict"]

# Marks that tokenizers leave behind a text: ChatML, Llama, DeepSeek (with its full-width bars), SentencePiece.
END_OF_TEXT = re.compile(
    r"(?:<\|[\w ]{1,40}\|>|<｜[^<>｜]{1,40}｜>|</s>|<eos>|<pad>|<end_of_turn>|\[EOS\])\Z"
)
# One run of blanks and bold marks, not several optional ones: a run that can be cut in two ways is quadratic.
VERDICT = re.compile(r"(?<!#)###[ \t\xa0*_]*(?P<word>True|False)(?![^\W_])")
BOLD = "*_ \t\xa0"
INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\x00"


def parse_verdict(text: str) -> bool | None:
    """Return the verdict that `text` ends with, or None.

    A verdict is `### True` or `### False`, spelled so, as the last thing of the last line that is not blank:

    - after the last `</think>`; a `<think>` that is never closed has no verdict in it;
    - bold around it or in it (`**### True**`, `### **True**`), white space and end-of-text marks such as
      `<|im_end|>` behind it do not matter; any other character behind it does, a quotation mark or a code
      fence included, so that a quoted verdict is none, nor is one on a line quoted with `>`;
    - other words may stand before it on its line, and other verdicts on earlier lines, which do not count;
    - two verdicts on its line have to agree, else there is none (`either ### True or ### False`).

    Example: `parse_verdict("Step 2 is wrong.\\n**### False**<|im_end|>")` is False.

    Args:
        text: the trace, any length. Takes time linear in it.
    """
    line = _last_line(_after_thinking(text))
    found = list(VERDICT.finditer(line))
    if not found or line[found[-1].end() :].strip(BOLD) or line.lstrip().startswith(">"):
        return None
    words = {match["word"] for match in found}
    return words == {"True"} if len(words) == 1 else None


def _after_thinking(text: str) -> str:
    close = text.rfind("</think>")
    rest = text[close + len("</think>") :] if close >= 0 else text
    return "" if "<think>" in rest else rest


def _last_line(text: str) -> str:
    """The last line that is not blank, without what may follow a verdict."""
    end = len(text)
    while True:
        while end > 0 and (text[end - 1].isspace() or text[end - 1] in INVISIBLE):
            end -= 1
        mark = END_OF_TEXT.search(text, max(0, end - 60), end)
        if mark is None:
            break
        end = mark.start()
    start = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
    return text[start:end]
