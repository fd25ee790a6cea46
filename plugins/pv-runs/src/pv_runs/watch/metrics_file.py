"""Metrics file readers: JSON lines, CSV, trainer_state.json and TensorBoard events, while the file grows."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pv_judge.files import load_json
from pv_judge.pages.text import plain
from pv_rl.errors import ConfigError, DataError
from pv_runs.growing_file import Replaced, Tail, open_regular
from pv_runs.watch.metric_rows import MOST_NAMES, Row, finite, flatten, is_step, to_row

__all__ = ["Reader", "open_metrics"]

FIRST_BYTES = 4096
LARGEST_STATE = 64 * 2**20
"""Bytes of a trainer_state.json."""
SEPARATORS = ",;\t"
WANDB_EXTREMES = ("__MIN", "__MAX")


class Reader(Protocol):
    """Of one file."""

    skipped: int
    """Lines that were left out."""
    in_parts: bool
    """Whether the metrics of a step come one after the other, so that a look may see a part of them."""

    def look(self, final: bool = False) -> Iterator[Row]:
        """What has come since the last look.

        Args:
            final: nothing more will come, so that a last line without its end counts.

        Raises:
            Replaced: the file was written anew.
            DataError: it is not what its name says.
            OSError: it is not there, or no regular file.
        """
        ...


def open_metrics(path: Path) -> Reader:
    """A reader for a file, by its name and first bytes, or for a folder with TensorBoard's event files.

    Raises:
        DataError: it has none of the formats.
        ConfigError: it is TensorBoard's, and the package `tensorboard` is not installed.
        OSError: it cannot be read.
    """
    if path.is_dir():
        events = sorted(one for one in path.rglob("*tfevents*") if one.is_file())
        if not events:
            raise DataError(
                f"{plain(path)} contains no TensorBoard event file (*tfevents*). Give a .jsonl, .csv or event file, "
                "or a folder with event files; for a run folder leave out --metrics"
            )
        # those of hyperparameters, which TensorBoard's writer puts into a folder below, are no other run
        events = [one for one in events if one.parent == path] or events
        folders = list(dict.fromkeys(one.parent for one in events))
        if len(folders) > 1:
            names = ", ".join(plain(one.relative_to(path), 60) for one in folders[:8])
            raise DataError(
                f"{plain(path)} contains event files in {len(folders)} folders; give one of {names}"
            )
        return EventFiles(folders[0])
    with open_regular(path) as file:
        first = file.read(FIRST_BYTES)
    if "tfevents" in path.name:
        return EventFiles(path)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{plain(path)} is encoded as UTF-16; save it as UTF-8")
    if path.suffix.lower() == ".json":
        return TrainerState(path)
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return JsonLines(path)
    if path.suffix.lower() in (".csv", ".tsv") or (not text and path.suffix.lower() != ".jsonl"):
        return Csv(path)
    if not text:
        return JsonLines(path)
    raise DataError(
        f"{plain(path)} is not a metrics file: expected JSON lines ({{...}} on each line), a CSV file (*.csv) or a "
        "TensorBoard event file (*tfevents*) or a trainer_state.json"
    )


class JsonLines:
    """An object a line: verl's `{"step": 3, "data": {...}}`, or the numbers beside the step."""

    in_parts = False

    def __init__(self, path: Path) -> None:
        self._tail, self._damaged = Tail(path), 0

    @property
    def skipped(self) -> int:
        return self._damaged + self._tail.skipped

    def look(self, final: bool = False) -> Iterator[Row]:
        for line in _lines(self._tail, final):
            try:
                record = load_json(line.removeprefix(b"\xef\xbb\xbf"))
                if not isinstance(record, dict):
                    raise ValueError("a line has to be an object")
            except ValueError:
                self._damaged += 1
                continue
            yield to_row(dict(flatten(record.pop("data"), "", 1)) | record if _is_verls(record) else record)


class Csv:
    """A line of names, then lines of numbers. wandb's export prefixes names with that of the run."""

    in_parts = False

    def __init__(self, path: Path) -> None:
        self._path, self._tail, self._damaged = path, Tail(path), 0
        self._names: list[str] = []
        self._separator = ","

    @property
    def skipped(self) -> int:
        return self._damaged + self._tail.skipped

    def look(self, final: bool = False) -> Iterator[Row]:
        for line in _lines(self._tail, final):
            text = line.decode("utf-8-sig" if not self._names else "utf-8", errors="replace").rstrip("\r")
            try:
                if not self._names:
                    if text.startswith("sep="):  # which tells Excel the separator
                        continue
                    self._names = self._read_names(text)
                    continue
                cells = next(csv.reader([text], delimiter=self._separator))
                if len(cells) != len(self._names):
                    raise ValueError("too many or too few cells")
            except (csv.Error, ValueError) as error:
                if isinstance(error, DataError):
                    raise
                self._damaged += 1
                continue
            pairs = zip(self._names, cells, strict=True)
            yield to_row({name: self._number(cell) for name, cell in pairs if name and cell.strip()})

    def _read_names(self, text: str) -> list[str]:
        self._separator = max(SEPARATORS, key=text.count)
        names = [name.strip() for name in next(csv.reader([text], delimiter=self._separator))]
        if all(self._number(name) is not None for name in names if name):
            raise DataError(f"the first line of {plain(self._path)} has no names of columns; add them")
        parts = [name.rsplit(" - ", 1) for name in names]
        runs = list(dict.fromkeys(part[0] for part in parts if len(part) == 2))
        # the first column is the axis of the chart that was exported: the step, or the time
        if not runs or any(len(part) == 1 and not is_step(part[0]) for part in parts[1:]):
            return names
        if len(runs) > 1:
            shown = ", ".join(plain(run, 40) for run in runs[:8])
            raise DataError(f"{plain(self._path)} contains {len(runs)} runs ({shown}); export one run")
        metrics = [part[-1] for part in parts]
        return ["" if name.endswith(WANDB_EXTREMES) else name for name in metrics]

    def _number(self, cell: str) -> float | None:
        if self._separator == ";" and "," in cell:
            whole, _, part = cell.rpartition(",")
            cell = f"{whole.replace('.', '')}.{part}"
        try:
            return float(cell)
        except ValueError:
            return None


class TrainerState:
    """The `log_history` of Hugging Face's trainer_state.json, which each checkpoint writes anew, or a list of rows."""

    in_parts = False

    def __init__(self, path: Path) -> None:
        self._path, self._count, self.skipped = path, 0, 0
        self._stamp: tuple[int, int] | None = None

    def look(self, final: bool = False) -> Iterator[Row]:
        found = self._path.stat()
        if self._stamp == (found.st_mtime_ns, found.st_size):
            return
        with open_regular(self._path) as file:
            text = file.read(LARGEST_STATE + 1)
        try:
            if len(text) > LARGEST_STATE:
                raise ValueError(f"it is larger than {LARGEST_STATE // 2**20} MiB")
            state = load_json(text)
            rows = state["log_history"] if isinstance(state, dict) else state
            if not isinstance(rows, list):
                raise ValueError("its log_history is no list")
        except (ValueError, KeyError, TypeError) as error:
            if self._count:
                return  # it is being written
            raise DataError(
                f"{plain(self._path)} is not a trainer_state.json with a log_history: {plain(str(error), 200)}. "
                "For JSON lines, name the file *.jsonl"
            ) from error
        self._stamp = (found.st_mtime_ns, found.st_size)
        if len(rows) < self._count:
            raise Replaced(str(self._path))
        begin, self._count = self._count, len(rows)
        for row in rows[begin:]:
            if isinstance(row, dict):
                yield to_row(row)
            else:
                self.skipped += 1


class EventFiles:
    """A TensorBoard event file, or those of one folder, one after the other. A resumed run adds a file."""

    in_parts = True

    def __init__(self, path: Path) -> None:
        try:
            from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
            from tensorboard.util import tensor_util
        except ImportError as error:
            raise ConfigError(
                "reading TensorBoard's event files needs the package tensorboard: pip install tensorboard"
            ) from error
        self.skipped = 0
        self._array = tensor_util.make_ndarray
        self._path, self._open = path, LegacyEventFileLoader
        self._loaders: dict[Path, Any] = {}
        self._find()

    def _find(self) -> None:
        folder = self._path.is_dir()
        for path in sorted(self._path.glob("*tfevents*")) if folder else [self._path]:
            if path not in self._loaders and (not folder or path.is_file()):
                open_regular(path).close()
                self._loaders[path] = self._open(str(path))

    def look(self, final: bool = False) -> Iterator[Row]:
        self._find()
        for loader in self._loaders.values():
            with contextlib.suppress(StopIteration):
                for event in loader.Load():
                    numbers = {
                        value.tag: number
                        for value in list(event.summary.value)[:MOST_NAMES]
                        if (number := self._scalar(value)) is not None
                    }
                    if numbers:
                        yield int(event.step), numbers

    def _scalar(self, value: Any) -> float | None:
        if value.HasField("simple_value"):
            return finite(value.simple_value)
        if not value.HasField("tensor") or value.tensor.string_val:
            return None
        try:
            array = self._array(value.tensor)
            return finite(float(array)) if array.size == 1 else None
        except (TypeError, ValueError):  # text, a histogram, a damaged tensor
            return None


def _lines(tail: Tail, final: bool) -> Iterator[bytes]:
    yield from tail.look()
    if final and tail.rest.strip():
        yield tail.rest


def _is_verls(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("data"), dict) and "step" in record
