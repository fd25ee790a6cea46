"""Properties that every reader of untrusted bytes has: documented errors only, and the same result twice."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from pv_rl.errors import PvRlError

__all__ = ["Refused", "file_of", "folder_of", "json_of", "outcome", "parts_of", "text_of"]


class Refused(NamedTuple):
    """A documented error."""

    kind: str
    message: str


def outcome(
    read: Callable[..., Any], *given: Any, errors: tuple[type[Exception], ...] = (), **options: Any
) -> Any:
    """What `read` returns (of an iterator, its items) or the documented error. It is called twice.

    Args:
        read: the reader.
        errors: further errors that its docstring names. Any other error escapes, and is a finding.
    """
    first, second = (_once(read, given, options, (PvRlError, *errors)) for _ in range(2))
    with suppress(RecursionError):  # of a value that is nested about as deep as Python can print it
        assert repr(first) == repr(second), "reading twice gives two results"
    return second


def _once(read: Callable[..., Any], given: Any, options: Any, errors: tuple[type[Exception], ...]) -> Any:
    try:
        made = read(*given, **options)
        return list(made) if isinstance(made, Iterator) else made
    except errors as raised:
        error = raised
    message = str(error)
    assert message.strip(), "an error without a message"
    assert str(pickle.loads(pickle.dumps(error))) == message, "an error that Ray cannot carry"
    return Refused(type(error).__name__, message)


def text_of(data: bytes) -> str:
    """The bytes as text; those that are not UTF-8 become lone surrogates, as JSON may hold them."""
    return data.decode("utf-8", "surrogateescape")


def json_of(data: bytes) -> Any:
    """The bytes as JSON, None where they are not."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def parts_of(data: bytes, number: int) -> list[bytes]:
    """The bytes in `number` parts, which a line `====` separates; missing ones are empty."""
    return [*data.split(b"\n====\n", number - 1), *[b""] * number][:number]


@contextmanager
def folder_of(**files: bytes) -> Iterator[Path]:
    """A folder with these files, a slash in a name written `__` and a dot `_dot_`."""
    with tempfile.TemporaryDirectory() as name:
        for key, data in files.items():
            path = Path(name, key.replace("__", "/").replace("_dot_", "."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield Path(name)


@contextmanager
def file_of(data: bytes, name: str) -> Iterator[Path]:
    """A file with these bytes, alone in its folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path
