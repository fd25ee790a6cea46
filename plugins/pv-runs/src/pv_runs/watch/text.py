"""Text from a run, which may hold anything, made safe and honest to show."""

from __future__ import annotations

import re

__all__ = ["redact", "visible"]

SECRET = re.compile(
    r"""(?ix) \b(?:sk|pk|rk)-[\w-]{16,}          # OpenAI's and those that copy its form
        | \b(?:hf|ghp|gho|glpat|xox[abp]|wandb)[_-][\w-]{16,}
        | \bAKIA[0-9A-Z]{16}\b
        | (?<=bearer\s)[\w.~+/=-]{8,}
        | (?<=key=)[^\s&"']{8,} | (?<=key:\s)[^\s&"']{8,} | (?<=token=)[^\s&"']{8,} | (?<=password=)\S{4,}
        | (?<=://)[^\s/@:]+:[^\s/@]+(?=@)        # user:password@host
    """
)
BLOT = "***"


def redact(text: str) -> str:
    """Text with what looks like a key or a password blotted out. An error that verl printed may hold one."""
    return SECRET.sub(BLOT, text)


def visible(text: str) -> str:
    """One line, with line breaks as `⏎` and every other character that a screen obeys and does not show as `�`:
    escape codes, controls, characters that turn the direction of writing, halves of surrogate pairs.
    """
    line = redact(text).replace("\r\n", "\n").replace("\n", "⏎ ").replace("\t", " ")
    return "".join(character if character.isprintable() else "\ufffd" for character in line)
