"""Column choice: which column of a file holds the prompt, the length, the verdict, the score, the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pv_judge.rowfiles import Kind, Reduction
from pv_rl.errors import DataError

__all__ = ["Columns", "choose_columns"]

GROUPS = ("uid", "prompt", "input")
LENGTHS: dict[str, tuple[Kind, ...]] = {
    "response_length": ("number",),
    "length": ("number",),
    "response_mask": ("list",),
    "responses": ("list", "text"),
    "response_ids": ("list",),
    "output": ("text",),
    "response": ("text",),
}
TEXTS = ("output", "response", "responses")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns to read; None for one that the file does not have."""

    group: str
    length: str
    length_kind: Kind
    verdict: str | None
    text: str | None
    """The trace, read for its verdict where there is no column of verdicts."""
    score: str | None
    step: str | None

    @property
    def names(self) -> list[str]:
        """Each once: what is not in here is not read."""
        asked = (self.group, self.length, self.verdict, self.text, self.score, self.step)
        return list(dict.fromkeys(name for name in asked if name is not None))

    @property
    def lists(self) -> dict[str, Reduction]:
        """Columns of lists to read as one number a row."""
        if self.length_kind != "list":
            return {}
        return {self.length: "sum" if self.length.endswith("mask") else "count"}


def choose_columns(
    path: Path, kinds: Mapping[str, Kind], group: str | None = None, length: str | None = None
) -> Columns:
    """Pick the columns by name and by what they hold.

    Args:
        path: the file, for errors.
        kinds: the file's columns.
        group: the prompt's column, for the first of `GROUPS` that is there.
        length: the length's column, for the first of `LENGTHS` that is there and holds what it should.

    Raises:
        DataError: a column that was asked for or is needed is not there.
    """
    for option, name in (("--group-column", group), ("--length-column", length)):
        if name is not None and name not in kinds:
            raise DataError(f"{option} {name!r} is not a column of {path}. It has: {', '.join(kinds)}")
    if group is None:
        group = next((name for name in GROUPS if name in kinds), None)
        if group is None:
            raise DataError(
                f"{path} has no column {_either(GROUPS)} that says which prompt a row answers. Name one with "
                f"--group-column; it has: {', '.join(kinds)}"
            )
    if length is None:
        fit = (name for name, allowed in LENGTHS.items() if kinds.get(name) in (*allowed, "empty"))
        length = next(fit, None)
        if length is None:
            raise DataError(
                f"{path} has no column {_either(LENGTHS)} with lengths, token ids or text in it. Name one with "
                f"--length-column; it has: {', '.join(kinds)}"
            )
    if kinds[length] in ("flag", "other"):
        raise DataError(
            f"column {length!r} of {path} contains no lengths. Name one of numbers, of lists (a mask, token ids) or "
            f"of text with --length-column; it has: {', '.join(kinds)}"
        )
    verdict = "verdict" if kinds.get("verdict") in ("flag", "text", "empty") else None
    text = None if verdict else next((name for name in TEXTS if kinds.get(name) == "text"), None)
    score = "score" if kinds.get("score") in ("number", "flag", "empty") else None
    step = "step" if kinds.get("step") == "number" else None
    return Columns(
        group=group,
        length=length,
        length_kind=kinds[length],
        verdict=verdict,
        text=text,
        score=score,
        step=step,
    )


def _either(names: tuple[str, ...] | dict[str, tuple[Kind, ...]]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"
