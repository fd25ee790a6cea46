"""Input files: opened as bytes, unpacked if they end in `.gz`, and refused where they are no regular file or UTF-16."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pv_rl.errors import DataError

__all__ = ["check_regular", "not_utf8", "opened", "suffix_of"]

PACKED = ".gz"
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def suffix_of(path: Path) -> str:
    """In small letters, without `.gz`."""
    plain = path.with_suffix("") if path.suffix.lower() == PACKED else path
    return plain.suffix.lower()


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which could be read without end.

    Raises:
        DataError: it is one.
    """
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is not a regular file, but a folder, a pipe or a device; give a file")


def not_utf8(path: Path, line: int) -> DataError:
    """The error for a file in another encoding, with the line where that shows."""
    return DataError(
        f"{path} is not UTF-8 (line {line}); write it again as UTF-8, for example by iconv -f latin1 -t utf8"
    )


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if it ends in `.gz`.

    Raises:
        DataError: it cannot be read, is cut off, or is UTF-16.
    """
    packed = path.suffix.lower() == PACKED
    check_regular(path)
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            if file.peek(2)[:2] in UTF16:  # pyright: ignore[reportAttributeAccessIssue]
                raise DataError(f"{path} is UTF-16; write it again as UTF-8, for example by iconv")
            yield file  # pyright: ignore[reportReturnType]
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read to its end ({type(error).__name__}: {error}); get it again"
        ) from error
