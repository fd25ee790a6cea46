"""Answer cleaner: turns a model's answer into a proof; an answer that holds no proof is `Unfit`.

What goes would tell a verifier who wrote the proof: thoughts, a code fence around it all, "Here is a new version:".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from pv_data.methods.base import Unfit
from pv_data.methods.language import script_of
from pv_data.prompt import Prompt
from pv_rl.verdict import end_of_trace, parse_verdict

__all__ = ["Reading", "bare", "body_of", "refuse"]

MIN_CHARACTERS = 20
REFUSAL_CHARACTERS = 800
"""A text longer than this is no refusal, whatever it begins with."""
ECHO_CHARACTERS = 50
"""A line of the instructions that is at least so long, found in the answer, was copied."""
CODE_FENCE = re.compile(r"```[A-Za-z]*[^\S\n]*\n(.*)\n[^\S\n]*```", re.DOTALL)
LEAD = re.compile(
    r"(?:sure|certainly|of course|absolutely)[!.][^\S\n]*\n"
    r"|(?:(?:sure|certainly|of course|okay|absolutely)[!,.]?\s+)?(?:here(?:'s|’s| is)|below is|the following is)\b"
    r"[^\n.:!]{0,120}\b(?:proof|solution|version|translation|rewrit\w+|rephras\w+|text)\b[^\n.:!]{0,80}[:.!]\**[^\S\n]*\n",
    re.IGNORECASE,
)
CLOSE = re.compile(
    r"\n[^\S\n]*(?:let me know|i hope (?:this|that)|feel free|please let me)\b[^\n]{0,300}\Z", re.IGNORECASE
)
CLOSE_REACH = 400
REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am) (?:really |very |so )?sorry|sorry|i apologi[sz]e|as an? (?:ai|large language)"
    r"|unfortunately,? i\b|i(?: am|['’]m) (?:unable|not able)"
    r"|i (?:cannot|can['’]?t|won['’]?t|will not|do not know|don['’]t know how)\b"
    r"|抱歉|对不起|很遗憾|我无法|我不能|作为一个)",
    re.IGNORECASE,
)
ONLY_VERDICT = re.compile(
    r"\W*(?:(?:yes|no|true|false|correct|incorrect|valid|invalid)|(?:the|this) (?:proof|solution|argument|answer) is "
    r"(?:not )?(?:completely |fully )?(?:in)?(?:correct|valid|right|wrong|true|false))\W*",
    re.IGNORECASE,
)
MARKUP = re.compile(r"\\[()\[\]]|[\s$*#_>`~]")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Reads the answers to one question of a method."""

    prompt: Prompt
    """Whose lines must not come back."""
    user: str
    """The user's message, for its mark."""
    problem: str
    source: str = ""
    """The text that had to be changed; empty where the model wrote on its own."""
    keeps_script: bool = True
    """Whether the answer is in the script of `source`."""
    also: Callable[[str], str | None] | None = None
    """A further check, of the method: why its language is wrong, or None."""

    def __call__(self, text: str) -> str:
        """The proof in an answer; raises `Unfit`."""
        return self.checked(body_of(text))

    def checked(self, body: str) -> str:
        """The proof, if it is one; raises `Unfit`."""
        refuse(body)
        if body.startswith("{") and "proof_correct" in body:
            raise Unfit("only a verdict", "the answer is a grade")
        if ONLY_VERDICT.fullmatch(body):
            raise Unfit("only a verdict", body[:200])
        if parse_verdict(body) is not None:
            raise Unfit("a verdict", "the proof ends with a verdict on itself")
        if fault := self._echo(body):
            raise Unfit("echo", fault)
        if len(body) < MIN_CHARACTERS:
            raise Unfit("too short", f"{len(body)} characters; at least {MIN_CHARACTERS}")
        if self.source and bare(body) == bare(self.source):
            raise Unfit("unchanged", "the answer is the proof that was given")
        if fault := self._language(body):
            raise Unfit("wrong language", fault)
        return body

    def _echo(self, body: str) -> str | None:
        if any(mark in body for mark in set(re.findall(r"data-[0-9a-f]{24}", self.user))):
            return "the answer holds the mark of the question"
        lines = (line.strip() for line in self.prompt.text.splitlines())
        if any(len(line) >= ECHO_CHARACTERS and line in body for line in lines):
            return "the answer holds a line of the instructions"
        if bare(body) == bare(self.problem):
            return "the answer is the problem"
        return None

    def _language(self, body: str) -> str | None:
        if self.also is not None and (fault := self.also(body)):
            return fault
        if not (self.source and self.keeps_script):
            return None
        was, now = script_of(self.source), script_of(body)
        return f"the proof is written in {was}, the answer in {now}" if was and now and was != now else None


def body_of(text: str) -> str:
    """What a model wrote, without its thoughts and what it said around the proof; raises `Unfit` if that is nothing."""
    body = text.rpartition("</think>")[2]
    if "<think>" in body:
        raise Unfit("unfinished thoughts", "the answer ends before its thoughts do")
    # A half of a surrogate pair, which JSON may bring, can be stored nowhere.
    body = body.encode("utf-8", "replace").decode().replace("\0", "")
    body = body[: end_of_trace(body)].strip()
    lead = LEAD.match(body)
    if lead:
        body = body[lead.end() :].strip()
    close = CLOSE.search(body, max(0, len(body) - CLOSE_REACH))
    if close:
        body = body[: close.start()].strip()
    fenced = CODE_FENCE.fullmatch(body)
    if fenced and "```" not in fenced[1]:
        body = fenced[1].strip()
    if not any(character.isalnum() for character in body):
        raise Unfit("empty answer", "the model wrote nothing")
    return body


def refuse(body: str) -> None:
    """Raise `Unfit` if the text declines to do what was asked."""
    if len(body) <= REFUSAL_CHARACTERS and REFUSAL.match(body):
        raise Unfit("refusal", body[:200])


def bare(text: str) -> str:
    """The text without case, white space and markup, to tell whether two texts are the same."""
    return MARKUP.sub("", unicodedata.normalize("NFKC", text)).casefold()
