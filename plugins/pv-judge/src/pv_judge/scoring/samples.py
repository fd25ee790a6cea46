"""Rollout reader: from a file of rollouts to the inputs of a reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pv_judge.rowfiles import Kind, Row, RowFile, open_rows
from pv_judge.rowfiles.steps import choose_file
from pv_rl.errors import DataError
from pv_rl.rewards.base import LabelKind, RewardInput

__all__ = ["Source", "open_source"]

RESPONSES = ("output", "response", "responses", "trace")
LABELS = ("gts", "label", "ground_truth", "reward_model")
GROUPS = ("uid", "prompt", "input")


@dataclass(frozen=True)
class Source:
    """A file of rollouts and the columns that are read."""

    table: RowFile
    response: str
    label: str
    others: tuple[str, ...]
    """`uid`, `prompt`, `step`, `data_source`, `extra_info`: those that the file has."""
    label_kind: LabelKind

    def samples(self, limit: int | None = None) -> Iterator[tuple[int, RewardInput]]:
        """The first `limit` rows in the order of the file, each with its number.

        Raises:
            DataError: a row has no text, or its label is not of the kind; the text says which.
        """
        return islice(self._samples(), limit)

    def where(self, number: int) -> str:
        """What a row is called in an error."""
        return f"{self.table.unit} {number} of {self.table.path}"

    def _samples(self) -> Iterator[tuple[int, RewardInput]]:
        for row in self.table.rows([self.response, self.label, *self.others]):
            yield row.number, self._sample(row)

    def _sample(self, source: Row) -> RewardInput:
        where, row = source.where, source.values
        text, label = row[self.response], row[self.label]
        if isinstance(label, Mapping):  # verl's column reward_model
            label = label.get("ground_truth", label)
        if not isinstance(text, str):
            raise DataError(f"{where}: {self.response!r} is not a text")
        uid = next((str(row[name]) for name in GROUPS if row.get(name) is not None), "")
        step = row.get("step")
        try:
            return RewardInput(
                response=text,
                label=label,
                label_kind=self.label_kind,
                data_source=str(row.get("data_source") or ""),
                extra=extra if isinstance(extra := row.get("extra_info"), Mapping) else {},
                prompt=_text(row.get("prompt", row.get("input"))),
                uid=uid,
                step=step if isinstance(step, int) else None,
            )
        except DataError as error:
            raise DataError(f"{where}: {error}") from None


def _text(prompt: object) -> str:
    """A prompt as text, which verl's data files hold as a chat."""
    chat = prompt if isinstance(prompt, list) else []
    parts = [one.get("content") for one in chat if isinstance(one, Mapping)]
    return prompt if isinstance(prompt, str) else "\n\n".join(one for one in parts if isinstance(one, str))


def open_source(
    path: Path,
    *,
    label_kind: LabelKind,
    step: int | None,
    response_column: str | None = None,
    label_column: str | None = None,
) -> Source:
    """Choose the file (see `pv_judge.rowfiles.steps`) and its columns.

    Raises:
        DataError: there is no such file or column.
    """
    if step is not None and path.is_file():
        raise DataError(f"--step {step} is for a folder of rollouts, and {path} is a file; leave it out")
    file, _ = choose_file(path, step)
    table = open_rows(file)
    response = _choose(file, table.kinds, "--response-column", response_column, RESPONSES, ("text", "empty"))
    label = _choose(file, table.kinds, "--label-column", label_column, LABELS, None)
    others = tuple(name for name in (*GROUPS, "step", "data_source", "extra_info") if name in table.kinds)
    return Source(table, response, label, others, label_kind)


def _choose(
    file: Path,
    kinds: Mapping[str, Kind],
    option: str,
    asked: str | None,
    names: tuple[str, ...],
    allowed: tuple[Kind, ...] | None,
) -> str:
    fit = [name for name in ((asked,) if asked else names) if name in kinds]
    fit = [name for name in fit if allowed is None or kinds[name] in allowed]
    if not fit:
        wanted = asked or " or ".join(names)
        what = " of text" if allowed else ""
        raise DataError(
            f"{file} has no column {wanted}{what}. Name one with {option}; the file has: {', '.join(kinds)}"
        )
    return fit[0]
