"""Rollout reader: one step of a file or a folder of rollouts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from pv_judge.rowfiles import Row, open_rows
from pv_judge.rowfiles.steps import choose_file, name_steps
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict
from pv_runs.weights.columns import Columns, choose_columns
from pv_runs.weights.counting import Counter, count_tokens_with, count_words
from pv_runs.weights.rollouts import MAX_LENGTH, Rollouts

__all__ = ["prompts_of_row_keys", "read_rollouts"]

TEXTS_AT_ONCE = 1024
ROW_KEY = re.compile(r"(.+)_[0-9]+_[0-9]+", re.DOTALL)


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
    table = open_rows(file)
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
    rows = _Rows(columns, counter, wanted)
    for row in table.rows(columns.names, columns.lists):
        rows.add(row)
    if wanted is not None and not rows.lengths:
        raise DataError(f"{file} has no rows of step {wanted}; it has {name_steps(rows.steps)}")
    if part is None and len(rows.steps) > 1:
        part = f"step {rows.step} of {name_steps(rows.steps)}"
    return rows.finish(f"{file}, {part}" if part else str(file), tokens=tokenizer is not None)


class _Rows:
    """The rows of one step: the one that is wanted, or the last one seen."""

    def __init__(self, columns: Columns, counter: Counter, wanted: int | None) -> None:
        self.columns, self.counter, self.wanted = columns, counter, wanted
        self.step = wanted
        self.steps: set[int] = set()
        self._clear()

    def _clear(self) -> None:
        self.lengths: list[int] = []
        self.groups: list[Hashable] = []
        self.verdicts: list[bool | None] = []
        self.scores: list[float | None] = []
        self._texts: list[str] = []

    def add(self, row: Row) -> None:
        columns, values = self.columns, row.values
        if columns.step and not self._is_of_the_step(row, values[columns.step]):
            return
        length = values[columns.length]
        if columns.length_kind != "text":
            self.lengths.append(self._length(row, length))
        elif isinstance(length, str):
            self._texts.append(length)
            if len(self._texts) == TEXTS_AT_ONCE:
                self._count()
        else:
            raise DataError(f"{row.where}: {columns.length!r} is {_show(length)}; it has to be text")
        self.groups.append(self._group(row, values[columns.group]))
        if columns.verdict or columns.text:
            read = _verdict if columns.verdict else _verdict_of_text
            self.verdicts.append(read(values[columns.verdict or columns.text or ""]))
        if columns.score:
            self.scores.append(_score(values[columns.score]))

    def _count(self) -> None:
        self.lengths += self.counter(self._texts)
        self._texts = []

    def _is_of_the_step(self, row: Row, step: Any) -> bool:
        """Whether to keep the row. Rows that were collected for an earlier step are dropped."""
        if isinstance(step, bool) or not isinstance(step, (int, float)) or step != step // 1:
            raise DataError(
                f"{row.where}: 'step' is {_show(step)}; it has to be a whole number. Leave the column out if it is "
                "not the training step"
            )
        self.steps.add(int(step))
        if self.wanted is None and (self.step is None or step > self.step):
            self._clear()
            self.step = int(step)
        return step == self.step

    def _length(self, row: Row, length: Any) -> int:
        whole = isinstance(length, (int, float)) and not isinstance(length, bool)
        if not whole or not 0 <= length <= MAX_LENGTH or length != int(length):
            raise DataError(
                f"{row.where}: the length in {self.columns.length!r} is {_show(length)}; it has to be a whole number "
                f"from 0 (a row that does not count) to {MAX_LENGTH}"
            )
        return int(length)

    def _group(self, row: Row, group: Any) -> Hashable:
        if group is None or group != group:
            raise DataError(
                f"{row.where}: {self.columns.group!r} is {_show(group)}; it has to say which prompt the row answers"
            )
        if isinstance(group, (list, dict)):  # a chat
            return json.dumps(group, sort_keys=True, default=str)
        return group

    def finish(self, source: str, *, tokens: bool) -> Rollouts:
        self._count()
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


def prompts_of_row_keys(ids: Sequence[object]) -> list[str] | None:
    """The prompt's part of each key; None where the ids are not such keys.

    verl 0.9.1 dumps `PROMPT_SESSION_INDEX` under the name `uid` (verl/trainer/ppo/v1/trainer_base.py,
    `_log_rollout_data`; the format is in agent_loop_tq.py), where one would look for the prompt's id. Without this
    every response is a prompt of its own, and `grpo` and `dapo` look the same.

    Example: `["a_0_0", "a_1_0", "b_0_0"]` gives `["a", "a", "b"]`. Ids that repeat are no keys of rows.
    """
    if len(set(ids)) < len(ids):
        return None
    matches = [ROW_KEY.fullmatch(key) if isinstance(key, str) else None for key in ids]
    found = [match[1] for match in matches if match is not None]
    return found if len(found) == len(ids) else None


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
