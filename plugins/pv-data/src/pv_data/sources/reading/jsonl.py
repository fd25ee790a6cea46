"""Rows of JSON lines. A line that cannot be read is set aside, and the next is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pv_data.records import Aside
from pv_data.sources.reading.fields import LONGEST, Fields
from pv_data.sources.reading.files import opened
from pv_data.sources.reading.unusable import SHOWN, Unusable, aside

__all__ = ["read_jsonl"]

LONGEST_LINE = 8 * LONGEST
"""Bytes: several texts, and characters that take more than one."""
BOM = b"\xef\xbb\xbf"


def read_jsonl(path: Path) -> Iterator[Fields | Aside]:
    """Each line as fields. No more than `LONGEST_LINE` bytes of a line are ever in memory."""
    with opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            where = f"{path.name}:{number}"
            if len(line) > LONGEST_LINE:
                size = len(line) + _rest(file, line)
                yield aside(
                    where, "giant row", f"{size} bytes; at most {LONGEST_LINE} are taken", _shown(line)
                )
                continue
            line = line.removeprefix(BOM) if number == 1 else line
            if not line.strip():
                continue
            try:
                yield Fields(where=where, values=_object(line))
            except Unusable as error:
                yield aside(where, error.reason, error.detail, _shown(line))


def _rest(file: BinaryIO, line: bytes) -> int:
    """Bytes up to the end of the line, which are thrown away."""
    size = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)
        size += len(line)
    return size


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unusable("not UTF-8", str(error)[:200]) from error
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise Unusable("not JSON", str(error)[:200]) from error
    if not isinstance(value, dict):
        raise Unusable("not an object", f"the line is a JSON {type(value).__name__}")
    return value


def _no_number(name: str) -> NoReturn:
    raise Unusable("not JSON", f"{name} is no JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that says something twice may say two labels."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Unusable("key twice", "an object names one of its keys more than once")
    return made


def _shown(line: bytes) -> str:
    return line[: 4 * SHOWN].decode("utf-8", "replace")
