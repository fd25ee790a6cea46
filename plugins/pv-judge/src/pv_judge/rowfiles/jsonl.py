"""JSON lines, as verl dumps its rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pv_judge.rowfiles.columns import Kind, Reduction
from pv_rl.errors import DataError

__all__ = ["JsonLines"]

BATCH = 1024


class JsonLines:
    """A `.jsonl` file, one object a line. Its columns are the keys of the first line.

    Raises:
        DataError: the file is empty, or a line is not what it should be.
    """

    row = "line"

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self._rows(), None)
        if first is None:
            raise DataError(f"{path} is empty; give a file with at least one response")
        self.kinds: dict[str, Kind] = {name: _kind(value) for name, value in first[1].items()}

    def batches(
        self, names: Sequence[str], lists: Mapping[str, Reduction]
    ) -> Iterator[tuple[list[int], dict[str, list[Any]]]]:
        """Line numbers, and the values of the columns `names`; a list in `lists` as its sum or its count."""
        numbers: list[int] = []
        values: dict[str, list[Any]] = {name: [] for name in names}
        for number, row in self._rows():
            numbers.append(number)
            for name in names:
                if name not in row:
                    raise DataError(f"line {number} of {self.path} has no {name!r}, which the first line has")
                value = row[name]
                if name in lists and value is not None:
                    value = self._reduce(value, lists[name], name, number)
                values[name].append(value)
            if len(numbers) == BATCH:
                yield numbers, values
                numbers, values = [], {name: [] for name in names}
        if numbers:
            yield numbers, values

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                except (ValueError, RecursionError) as error:
                    raise DataError(
                        f"line {number} of {self.path} is not JSON ({error}). Was the run stopped while it was "
                        "written? Take the line out, or another file"
                    ) from error
                if not isinstance(row, dict):
                    raise DataError(
                        f"line {number} of {self.path} is a JSON {type(row).__name__}; each line has to be an "
                        'object such as {"uid": "a", "length": 12}'
                    )
                yield number, row

    def _reduce(self, value: Any, how: Reduction, name: str, number: int) -> int:
        items = set(map(type, value)) if isinstance(value, list) else {None}
        wrong = not items <= ({int, bool, float} if how == "sum" else {int})
        if how == "sum" and not wrong:
            wrong = not {0, 1}.issuperset(value)
        if wrong:
            what = "a list of 0 and 1" if how == "sum" else "a list of token ids, one response a row"
            raise DataError(f"line {number} of {self.path}: {name!r} is not {what}")
        return int(sum(value)) if how == "sum" else len(value)


def _kind(value: Any) -> Kind:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "other"
