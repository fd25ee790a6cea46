"""From a file of rollouts, or a folder of them, to `Rollouts`."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pv_judge.rowfiles.columns import Columns, Kind, Reduction, choose_columns
from pv_judge.rowfiles.jsonl import JsonLines
from pv_judge.rowfiles.parquet import Parquet
from pv_judge.rowfiles.steps import choose_file, name_steps
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict
from pv_runs.weights.counting import Counter, count_tokens_with, count_words
from pv_runs.weights.rollouts import MAX_LENGTH, Rollouts
from pv_runs.weights.row_keys import prompts_of_row_keys

__all__ = ["read_rollouts"]


class Table(Protocol):
    """A file of rows: `JsonLines` or `Parquet`."""

    path: Path
    row: str
    kinds: dict[str, Kind]

    def batches(
        self, names: Sequence[str], lists: Mapping[str, Reduction]
    ) -> Iterator[tuple[list[int], dict[str, list[Any]]]]: ...


def read_rollouts(
    path: Path,
    *,
    step: int | None = None,
    group_column: str | None = None,
    length_column: str | None = None,
    tokenizer: str | None = None,
) -> Rollouts:
    """Read one step's responses.

    Args:
        path: a .parquet or .jsonl file, or a folder of them named for their steps (verl's `rollout_data_dir`).
        step: the step to take of a folder, or of a file with a column `step`; None for the last.
        group_column: see `choose_columns`.
        length_column: likewise.
        tokenizer: folder of a tokenizer, for lengths that are counted in text; None counts words.

    Raises:
        DataError: the file is not what it should be; the text says where.
        SetupError: a package is missing that this file needs.
    """
    file, part = choose_file(path, step)
    table: Table = JsonLines(file) if file.suffix == ".jsonl" else Parquet(file)
    columns = choose_columns(file, table.kinds, group_column, length_column)
    if tokenizer is not None and columns.length_kind != "text":
        raise DataError(
            f"--tokenizer is for text, and the lengths of {file} are in column {columns.length!r}: leave it out, or "
            "name a column of text with --length-column"
        )
    counter = count_words if tokenizer is None else count_tokens_with(tokenizer)
    wanted = None if part else step
    if wanted is not None and columns.step is None:
        raise DataError(
            f"--step {wanted} is for a folder, or for a file with a column 'step'; {file} has none"
        )
    rows = _Rows(table, columns, counter, wanted)
    for numbers, values in table.batches(columns.names, columns.lists):
        rows.add(numbers, values)
    if wanted is not None and not rows.lengths:
        raise DataError(f"{file} has no rows of step {wanted}; it has {name_steps(rows.steps)}")
    if part is None and len(rows.steps) > 1:
        part = f"step {rows.step} of {name_steps(rows.steps)}"
    return rows.finish(f"{file}, {part}" if part else str(file), tokens=tokenizer is not None)


class _Rows:
    """The rows of one step: the one that is wanted, or the last one seen."""

    def __init__(self, table: Table, columns: Columns, counter: Counter, wanted: int | None) -> None:
        self.path, self.row, self.columns, self.counter, self.wanted = (
            table.path,
            table.row,
            columns,
            counter,
            wanted,
        )
        self.step = wanted
        self.steps: set[int] = set()
        self._clear()

    def _clear(self) -> None:
        self.lengths: list[int] = []
        self.groups: list[Hashable] = []
        self.verdicts: list[bool | None] = []
        self.scores: list[float | None] = []

    def add(self, numbers: list[int], values: dict[str, list[Any]]) -> None:
        columns = self.columns
        kept = self._of_the_step(numbers, values[columns.step]) if columns.step else range(len(numbers))
        where = [f"{self.row} {numbers[i]} of {self.path}" for i in kept]
        lengths = [values[columns.length][i] for i in kept]
        if columns.length_kind == "text":
            for place, text in zip(where, lengths, strict=True):
                if not isinstance(text, str):
                    raise DataError(f"{place}: {columns.length!r} is {_show(text)}; it has to be text")
            lengths = self.counter(lengths)
        self.lengths += [self._length(place, length) for place, length in zip(where, lengths, strict=True)]
        groups = [values[columns.group][i] for i in kept]
        self.groups += [self._group(place, group) for place, group in zip(where, groups, strict=True)]
        if columns.verdict or columns.text:
            read = _verdict if columns.verdict else _verdict_of_text
            self.verdicts += [read(values[columns.verdict or columns.text or ""][i]) for i in kept]
        if columns.score:
            self.scores += [_score(values[columns.score][i]) for i in kept]

    def _of_the_step(self, numbers: list[int], steps: list[Any]) -> list[int]:
        """Positions to keep. Rows that were collected for an earlier step are let go."""
        for number, step in zip(numbers, steps, strict=True):
            if isinstance(step, bool) or not isinstance(step, (int, float)) or step != step // 1:
                raise DataError(
                    f"{self.row} {number} of {self.path}: 'step' is {_show(step)}; it has to be a whole "
                    "number. Leave the column out if it is not the training step"
                )
        self.steps.update(int(step) for step in steps)
        if self.wanted is None:
            last = int(max(steps))
            if self.step is None or last > self.step:
                self._clear()
                self.step = last
        return [i for i, step in enumerate(steps) if step == self.step]

    def _length(self, place: str, length: Any) -> int:
        whole = isinstance(length, (int, float)) and not isinstance(length, bool)
        if not whole or not 0 <= length <= MAX_LENGTH or length != int(length):
            raise DataError(
                f"{place}: the length in {self.columns.length!r} is {_show(length)}; it has to be a whole number "
                f"from 0 (a row that does not count) to {MAX_LENGTH}"
            )
        return int(length)

    def _group(self, place: str, group: Any) -> Hashable:
        if group is None or group != group:
            raise DataError(
                f"{place}: {self.columns.group!r} is {_show(group)}; it has to say which prompt the row answers"
            )
        if isinstance(group, (list, dict)):  # a chat
            return json.dumps(group, sort_keys=True, default=str)
        return group

    def finish(self, source: str, *, tokens: bool) -> Rollouts:
        columns = self.columns
        notes: list[str] = []
        groups = self.groups
        if columns.group == "uid" and (prompts := prompts_of_row_keys(groups)) is not None:
            groups = prompts
            notes.append(
                "'uid' holds verl's keys of rows, PROMPT_SESSION_INDEX: the prompt is what stands first."
            )
        ids: dict[Hashable, int] = {}
        numbered = [ids.setdefault(group, len(ids)) for group in groups]
        if len(ids) == len(groups) > 1:
            notes.append(
                f"Each response has a prompt of its own in {columns.group!r}. If that is not so, name the prompt's "
                "column with --group-column."
            )
        elif columns.group in ("prompt", "input"):
            notes.append(f"Prompts are told apart by their text, in {columns.group!r}.")
        words = columns.length_kind == "text" and not tokens
        if words:
            notes.append(
                f"Lengths are words of {columns.length!r}, not tokens. --tokenizer PATH counts its tokens."
            )
        elif columns.length_kind == "text":
            notes.append(
                f"Lengths are tokens of the text in {columns.length!r}. verl's dump leaves end-of-text marks out, so a "
                "response that ended by itself counts one less than in training."
            )
        elif columns.lists.get(columns.length) == "count":
            notes.append(f"Lengths count the ids in {columns.length!r}, padding too if it is in there.")
        return Rollouts(
            lengths=self.lengths,
            groups=numbered,
            verdicts=_unless_empty(self.verdicts),
            scores=_unless_empty(self.scores),
            unit="words" if words else "tokens",
            source=source,
            notes=tuple(notes),
        )


def _verdict_of_text(text: Any) -> bool | None:
    return parse_verdict(text) if isinstance(text, str) else None


def _verdict(value: Any) -> bool | None:
    return value if isinstance(value, bool) else {"True": True, "False": False}.get(str(value))


def _score(value: Any) -> float | None:
    try:
        score = float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:  # a JSON integer may have any number of digits
        score = math.nan
    return score if math.isfinite(score) else None


def _unless_empty(values: list[Any]) -> list[Any] | None:
    return values if any(value is not None for value in values) else None


def _show(value: Any) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
