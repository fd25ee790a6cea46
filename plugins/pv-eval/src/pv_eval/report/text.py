"""Text of models and data sets made safe to show, line breaks kept."""

from __future__ import annotations

__all__ = ["visible"]

KEPT = "\n\t"


def visible(text: str) -> str:
    """Whatever is not printable as an escape that shows it: terminal sequences, marks that turn the text's direction.

    Example: an escape character is `\\x1b`, a right-to-left override `\\u202e`, half a surrogate pair `\\ud800`.
    """
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character if character in KEPT or character.isprintable() else _escape(character)
        for character in unified
    )


def _escape(character: str) -> str:
    # white space such as a no-break space is not printable for Python, and harmless
    return " " if character.isspace() and ord(character) > 0x7F else ascii(character)[1:-1]
