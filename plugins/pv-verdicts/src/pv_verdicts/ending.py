"""Last line of a trace: where verdict formats look for an answer."""

from __future__ import annotations

import re

from pv_rl.errors import ConfigError
from pv_rl.verdict import LONGEST_READ, end_of_trace

__all__ = ["compile_pattern", "last_line", "last_match", "only_number"]

BOXED = re.compile(r"\\boxed\{\s*([^{}]{1,40}?)\s*\}")
LONGEST_LINE = 400
"""Characters of a last line that are read."""
LONGEST_PATTERN = 2000
"""Characters at the end of a trace that a pattern is searched in."""


def last_line(trace: str, mark: str) -> str | None:
    r"""What the trace's last line gives as its answer: behind `### MARK:`, or inside its last `\boxed{}`; else None.

    Only text after the last `</think>` counts, and a `<think>` that is never closed has no answer behind it. Bold
    marks, white space and end-of-text marks around the answer are ignored. Linear in the length of the trace.

    Example: of "Step 3 divides by 0.\n### First wrong step: 3<|im_end|>" with the mark `First wrong step` it is "3".
    """
    trace = trace[trace.rfind("</think>") + len("</think>") :] if "</think>" in trace else trace
    if "<think>" in trace:
        return None
    end = end_of_trace(trace)
    tail = trace[max(0, end - LONGEST_READ) : end]
    lines = tail.splitlines() or [""]
    line = lines[-1].strip()
    if len(line) > LONGEST_LINE:
        return None
    plain = line.replace("**", "").replace("__", "")
    if found := re.fullmatch(rf"#+\s*{re.escape(mark)}\s*[:=]?\s*(\S.*)", plain, re.IGNORECASE):
        return found[1].strip().strip("$")
    boxed = BOXED.findall(line)
    return boxed[-1] if boxed else None


def only_number(text: str) -> float | None:
    """A number such as `5`, `0.5` or `1/2`, alone in the text; None for anything else."""
    if found := re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text):
        return int(found[1]) / int(found[2]) if int(found[2]) else None
    return float(text) if re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text) else None


def compile_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """The option `pattern` of a format: a regular expression with one group.

    Raises:
        ConfigError: it is not one.
    """
    if pattern is None:
        return None
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"pattern={pattern!r} is not a regular expression: {error}") from error
    if compiled.groups != 1:
        raise ConfigError(
            f"pattern={pattern!r} has {compiled.groups} groups; expected one, around the answer"
        )
    return compiled


def last_match(trace: str, pattern: re.Pattern[str]) -> str | None:
    """The group of the pattern's last match near the end of the trace."""
    found = pattern.findall(trace[-LONGEST_PATTERN:])
    return found[-1] if found else None
