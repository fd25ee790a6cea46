"""Parser of the verdict at the end of a verifier's trace.

A trace is untrusted text of any length. Finding its end takes linear time, and of what stands before the end
`LONGEST_READ` characters are searched for verdicts.
"""

from __future__ import annotations

import re

__all__ = ["after_thinking", "end_of_trace", "parse_verdict"]

LONGEST_READ = 10_000
"""Characters before the end of a trace that are searched for verdicts."""
BEFORE = 400
"""Characters before a verdict that are searched for a condition of it."""
NEAR = 80
"""Characters before a verdict that are searched for other words that deny or quote it."""
BOLD = "*_"
INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\x00"
# White space without line breaks, and bold marks. It is one class, so that a run of them can be read in one way only.
BLANK = r"[ \t\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000*_]"
VERDICT = re.compile(rf"###(?<!####){BLANK}*(?P<word>True|False)(?![^\W_])")
# Whatever looks like a verdict, in any spelling, may contradict the one at the end.
LOOKALIKE = re.compile(rf"#{BLANK}*(?P<word>true|false)(?![^\W_])", re.IGNORECASE)
QUOTED_LINE = re.compile(r"[\s*+\-]*>")
# Marks that tokenizers leave behind a text: ChatML, Llama, DeepSeek (with full-width bars), SentencePiece. They are
# spelled backwards, since the text is read from its end.
END_OF_TEXT = re.compile(
    rf"(?:[\s{INVISIBLE}]|>\|[\w▁ ]{{1,40}}\|<|>｜[^<>｜]{{1,40}}｜<|>s/<|>soe<|>dap<|>\w{{1,20}}_fo_dne<|\]SOE\[)*"
)
BLOCK = 4096

SENTENCE_END = re.compile(r"[.!?;。！？；]")
CLAUSE_END = re.compile(r"[:：]|[,，] so\b|\b(?:hence|thus|therefore)\b", re.IGNORECASE)
GAP = r"[^\w,，]*\Z"
SAY = "(?:say|conclud|answer|giv|output|writ|return|deserv|earn|mean|accept|warrant)(?:e|t?ing)?"
SAYING = rf"(?: (?:an?|the|any|be|been|being|have|also|then|still|just|only|{SAY}))*"
# The end of a sentence, right before a verdict, that denies it, quotes it, supposes it or makes it one of several.
NOT_MEANT = re.compile(
    r"(?:\bone of(?: (?:the|these|those|two|verdicts|answers|options|strings|following(?: \w+)?))*"
    rf"|\b(?:(?:be|is|read|with|{SAY}) either|whether(?: (?:it|this|the|is|proof|answer|verdict))*|such as"
    r"|for example|for instance|eg)"
    r"|\b(?:options|choices|(?:possible|allowed|permitted) (?:verdicts|answers|outputs|lines))(?: are\b|:)"
    r"|\b(?:far from|instead of|anything but|nowhere near|short of|opposite of|by no means|in no way|hardly|scarcely"
    r"|barely|unless|against|versus|(?<!or )not|never|neither|nor|cannot|would|could|might|(?-i:may)"
    rf"){SAYING}|['’][td]\b{SAYING}|\bor|\A\W*otherwise[,，]?"
    rf"|\b(?:wrong|incorrect|mistaken|premature|absurd|tempting|tempted|impossible|unable"
    rf"|refus(?:e|es|ed|ing)|declin(?:e|es|ed|ing)) to {SAY}"
    r"|(?:不是|并非|绝非|远非|而非|不等于|不应该?|不能|无法|不可能|不会|之一|例如|比如|或者?|要么|请|很难|难以|格式)[是为判定断认说得出给输回答写]*"
    rf"){GAP}|[\"'`“‘«「『][{BOLD}]*\Z",
    re.IGNORECASE,
)
# The same on the verdict's own line. The first words hold up to a colon: `as I said: ### True` says it again.
MENTION = re.compile(
    r"\b(?:(?:with|than|rule out|ruling out|earlier|previous|former|initial|says?|said|saying|write|writing)"
    r"[^\w:：]*\Z"
    r"|(?:(?:last|final|closing|verdict) line (?:must|should|shall|has to|have to|is to|can|may)"
    r" (?:be|read|say)(?: exactly| only| just)?"
    r"|(?:end|finish|conclude|respond|reply|answer)(?: \w+){0,4} with|format (?:is|was|of|like)"
    rf"|(?:supposed|required|told|asked|instructed|expected) (?:me |us |you )?to {SAY}"
    rf"|(?:you|grader|verifier|assistant|model|judge) (?:must|should|can|may|have to|need to) {SAY}"
    rf"|please {SAY}){GAP})",
    re.IGNORECASE,
)
# `So I will end with ### False` is no mention of a rule.
PERFORMED = re.compile(
    r"(?:\A|[,，;]|\b(?:so|hence|thus|therefore|and))[^\w,，;]*(?:I|we|let me)"
    r"(?:['’](?:ll|m)| will| am| therefore| thus| now)*"
    rf" (?:end|finish|conclude|respond|reply|answer|say|write|go|going)(?: \w+){{0,4}}?{GAP}",
    re.IGNORECASE,
)
# `If S3 holds, the verdict is ### True` supposes a verdict; `if n = 0 it fails, so the verdict is ### False` gives one.
CONDITION = re.compile(
    r"(?:(?<!even )\b(?:if|unless|provided|assuming|supposing)\b[^,，]{0,300}?(?:[,，]|\bthen\b)"
    rf"(?:[^\w,，]*\b(?:then|the|my|final|verdict|answer|result|conclusion|output|is|be|it|will|must|should|end|with|I|we|{SAY})\b)*"
    rf"|(?<!即)(?:如果|假如|假设|倘若|要是|除非|只有|若(?!干)).{{0,300}}?[,，则][那么则就最终结论答案判定应该会为是]*){GAP}",
    re.IGNORECASE,
)
# A True that is denied within five words of its clause is no acceptance.
DENIAL = re.compile(r"(?:\b(?:not|cannot|never|neither|nor|would)|n['’]t)\b", re.IGNORECASE)
DENIAL_WORDS = 5
# `The missing case cannot occur, ### True` ends the denial; `it is not, in my view, ### True` only interrupts it.
ENDED = re.compile(rf"[^,，]*(?<! so)[,，][{BOLD}]*\Z")


def parse_verdict(text: str) -> bool | None:
    """Return the verdict that `text` ends with, or None.

    A verdict is `### True` or `### False`, spelled so, as the last thing of the last line that is not blank:

    - Only text after the last `</think>` counts, and a `<think>` that is never closed has no verdict behind it. (Where
      the chat template puts `<think>` into the prompt, a response that is cut off in its thoughts shows neither mark.)
    - Bold marks around it or in it (`**### True**`, `### **True**`), and white space and end-of-text marks such as
      `<|im_end|>` behind it are ignored. Any other character behind it, such as a quotation mark or a code fence, makes
      it a quotation, and so does a line that begins with `>`.
    - Other words may stand before it on its line (`so S3 is wrong ### False`), unless they quote it or the rule for
      it (`the final line must be one of: ### True`), make it conditional (`if S3 holds, then ### True`, `it would be
      ### False`), deny it (`far from ### True`, `not ### False`) or, for a True, deny anything in the five words
      before it (`I cannot conclude ### True`). Such words apply up to the next punctuation, the latter up to a full
      stop, a colon, `so` or `hence`, or the clause's only comma, right before the verdict (`the gap is not fatal, so
      ### True`, but not `it is not, in my view, ### True`).
    - All verdicts on its line have to agree with it, in any spelling (`### FALSE ### True` gives None). So do the
      lines before it that end with a verdict, where only blank lines, lines without letters or digits and
      end-of-text marks stand between (`### True`, `---`, `### False` gives None, also below `one of:`). Other words
      between revise the earlier verdict, and the last one is returned.

    In doubt it returns None: a missing verdict is counted, a wrong one is paid.

    Example: `parse_verdict("Step 2 is wrong.\\n**### False**<|im_end|>")` is False.

    Args:
        text: the trace, any length. Takes time linear in it. Only the last `LONGEST_READ` (10,000) characters before
            the end are searched for verdicts; one that is further away, even on the same line, does not count.
    """
    text = after_thinking(text)
    end = end_of_trace(text)
    tail = text[max(0, end - LONGEST_READ) : end]
    start = _line_start(tail, len(tail))
    found = list(VERDICT.finditer(tail, start))
    if not found or tail[found[-1].end() :].strip(BOLD + INVISIBLE + " \t\xa0"):
        return None
    verdict = _verdict_of(tail, start, len(tail), 0)
    while verdict is not None and start > 0:
        stop = end_of_trace(tail[:start])
        start = _line_start(tail, stop)
        if any(map(str.isalnum, tail[start:stop])):
            other = _verdict_of(tail, start, stop, start)
            if other is not verdict:
                return verdict if other is None else None
    return verdict


def _verdict_of(text: str, start: int, stop: int, since: int) -> bool | None:
    """The verdict, in any spelling, that a line `text[start:stop]` ends with, if no words from `since` on deny it."""
    found = list(LOOKALIKE.finditer(text, start, stop))
    if (
        not found
        or any(map(str.isalnum, text[found[-1].end() : stop]))
        or QUOTED_LINE.match(text, start, stop)
    ):
        return None
    accepts = found[0]["word"].lower() == "true"
    if any((one["word"].lower() == "true") is not accepts for one in found):
        return None
    if any(_is_not_meant(text, start, since, one.start(), accepts) for one in (found[0], found[-1])):
        return None
    return accepts


def _is_not_meant(text: str, line: int, since: int, at: int, accepts: bool) -> bool:
    """Whether the words right before the verdict at `at`, on a line that starts at `line`, take it back."""
    sentence = SENTENCE_END.split(text[max(since, at - BEFORE) : at].rstrip("#").replace("e.g.", "eg"))[-1]
    if not sentence.strip(BOLD + " \t\r\n"):
        return False
    said = sentence[max(0, len(sentence) - (at - line)) :]
    clause = " ".join(CLAUSE_END.split(said)[-1].split()[-DENIAL_WORDS:])
    return bool(
        NOT_MEANT.search(sentence[-NEAR:])
        or (MENTION.search(said[-NEAR:]) and not PERFORMED.search(said[-NEAR:]))
        or CONDITION.search(said)
        or (accepts and DENIAL.search(clause) and not ENDED.match(clause))
    )


def _line_start(text: str, stop: int) -> int:
    return max(text.rfind("\n", 0, stop), text.rfind("\r", 0, stop)) + 1


def after_thinking(text: str) -> str:
    """The text after the last `</think>`; empty where a `<think>` after it is never closed."""
    close = text.rfind("</think>")
    rest = text[close + len("</think>") :] if close >= 0 else text
    return "" if "<think>" in rest else rest


def end_of_trace(text: str) -> int:
    """The offset behind the last character that is neither white space nor part of an end-of-text mark."""
    end = len(text)
    while end > 0:
        read = END_OF_TEXT.match(text[max(0, end - BLOCK) : end][::-1])
        if not read or not read.end():
            break
        end -= read.end()
    return end
