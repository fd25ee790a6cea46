"""Atomic writing: a file is complete or unchanged. Reader of JSON from outside, and its checksum."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pv_rl.errors import DataError

__all__ = ["check_target", "load_json", "verified", "with_checksum", "write_atomically", "write_together"]


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, and put it in its place; on an error `path` stays as it was.

    Raises:
        OSError: it cannot be written, by `write` or here; it names a file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk does not say where
    finally:
        temporary.unlink(missing_ok=True)


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write every file beside its place, then move all into place: an error while writing leaves all unchanged.

    Raises:
        DataError: a target is a folder, or its folder is missing.
        OSError: a file cannot be written.
    """
    if not files:
        return
    (path, data), *others = files.items()
    check_target("the file", path)

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)
        write_together(dict(others))  # before this one takes its place

    write_atomically(path, write)


DEEPEST = 200
"""Levels of JSON from outside. Python walks and prints about five times as many."""


def load_json(text: str | bytes, **options: Any) -> Any:
    """`json.loads` for text from outside. Whatever it cannot read is a ValueError, also more than `DEEPEST` levels."""
    try:
        value = json.loads(text, **options)
    except RecursionError as error:
        raise ValueError(f"it has more than {DEEPEST} levels") from error
    except UnicodeDecodeError as error:  # its text is another one after pickling
        raise ValueError(f"it is not {error.encoding} ({error.reason})") from error
    opening = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, opening)) > DEEPEST:  # pyright: ignore[reportArgumentType]
        level = [value]
        for _ in range(DEEPEST + 1):
            below = []
            for one in level:
                if isinstance(one, dict):
                    below += one.values()
                elif isinstance(one, list):
                    below += one
            level = below
        if level:
            raise ValueError(f"it has more than {DEEPEST} levels")
    return value


def check_target(option: str, path: Path) -> None:
    """Check before any work that a file can be written.

    Raises:
        DataError: the path is a folder, or its folder is missing.
    """
    if path.is_dir():
        raise DataError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise DataError(
            f"{option} {path}: there is no folder {path.parent}; make it first, or name another file"
        )


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document with the checksum of what it says, `crc32`."""
    document = {key: value for key, value in document.items() if key != "crc32"}
    return document | {"crc32": f"{zlib.crc32(json.dumps(document, sort_keys=True).encode()):08x}"}


def verified(document: dict[str, Any]) -> dict[str, Any]:
    """The document; one without a checksum, of an earlier version or written by hand, is not checked.

    Raises:
        ValueError: it does not fit its checksum.
    """
    if "crc32" in document and with_checksum(document) != document:
        raise ValueError("it was damaged, or changed without taking out its checksum, crc32")
    return document
