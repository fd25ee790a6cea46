"""Responses of one step as a weighting sees them, and those that a user types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pv_rl.errors import DataError

__all__ = ["MAX_LENGTH", "Rollouts", "read_lengths"]


MAX_LENGTH = 10**9
"""Tokens. What is longer is no response but a mistake."""


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """The responses of one step; `B` of them, in the order in which they were given."""

    lengths: Sequence[int]
    """(B,) whole numbers >= 0 in `unit`; 0 for a row that does not count."""
    groups: Sequence[int]
    """(B,) number of the response's prompt: 0, 1, ... in order of appearance."""
    verdicts: Sequence[bool | None] | None = None
    """(B,) the trace's verdict, None for a missing one; None in all where no trace has a verdict."""
    scores: Sequence[float | None] | None = None
    """(B,) reward, None where there is no finite number; None in all where there are no scores."""
    unit: Literal["tokens", "words"] = "tokens"
    """What a length counts. Words are a stand-in where only text is there, and no tokenizer."""
    source: str
    """Where they are from, for titles."""
    notes: tuple[str, ...] = ()
    """How the source was read, where a reader might have expected something else."""


SEPARATOR = re.compile(r"\s*,\s*|\s+")
WHOLE_NUMBER = re.compile(
    r"[0-9]{1,20}"
)  # int() alone would let through signs, underscores and other scripts


def read_lengths(options: Sequence[str]) -> Rollouts:
    """Read the values of `--lengths`.

    Example: `read_lengths(["1,2,5;3 4"])` has lengths 1, 2, 5, 3, 4 and groups 0, 0, 0, 1, 1.

    Args:
        options: each one prompt or, with `;` between them, several: whole numbers of tokens, separated by
            commas or blanks.

    Raises:
        DataError: something is not a whole number from 0 to `MAX_LENGTH`, or a prompt has no response.
    """
    lengths: list[int] = []
    groups: list[int] = []
    prompts = [(option, prompt) for option in options for prompt in option.split(";")]
    for group, (option, prompt) in enumerate(prompts):
        for field in SEPARATOR.split(prompt.strip()):
            if WHOLE_NUMBER.fullmatch(field) is None or int(field) > MAX_LENGTH:
                raise DataError(
                    f"--lengths {option!r} holds {field!r}, which is not a length. Give whole numbers of tokens, from "
                    f"0 (a row that does not count) to {MAX_LENGTH}, with commas or blanks between them, one prompt "
                    "for each --lengths, or ';' between prompts: --lengths '1,2,5;3,4'."
                )
            lengths.append(int(field))
            groups.append(group)
    count = f"{len(lengths)} given length{'s' * (len(lengths) != 1)}"
    return Rollouts(lengths=lengths, groups=groups, source=count)
