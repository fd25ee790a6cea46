"""The lengths that somebody typed: `10,20,400`, or `1,2,5;3,4` for two prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pv_rl.errors import DataError
from pv_runs.weights.rollouts import MAX_LENGTH, Rollouts

__all__ = ["read_lengths"]

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
                    f"--lengths {option!r} holds {field!r}, which is no length. Give whole numbers of tokens, from 0 "
                    f"(a row that does not count) to {MAX_LENGTH}, with commas or blanks between them, one prompt "
                    "for each --lengths, or ';' between prompts: --lengths '1,2,5;3,4'."
                )
            lengths.append(int(field))
            groups.append(group)
    count = f"{len(lengths)} given length{'s' * (len(lengths) != 1)}"
    return Rollouts(lengths=lengths, groups=groups, source=count)
