"""Source files: one file, or those of a folder."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pv_rl.errors import DataError

__all__ = ["check_regular", "files", "opened", "suffix_of"]

PACKED = ".gz"
WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file, or those of the folder with one of these suffixes, in order of their names; folders in it are not read.

    Links are followed, and one that leads nowhere is a file that cannot be read. `.gz` may follow a suffix, but for
    Parquet.

    Raises:
        DataError: there is none, or what there is is no file (a pipe, a device).
    """
    told = ", ".join(suffixes)
    try:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if not (one.is_dir() or one.name.startswith(".")))
            found = [one for one in inside if suffix_of(one) in suffixes]
            if not found:
                raise DataError(f"the folder {path} has no file that ends in {told}; give the one that has")
            return found
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise DataError(f"{path} {what}; give a file that ends in {told}, or a folder of such")
    except (OSError, ValueError) as error:  # a loop of links, a name too long; a NUL in the name
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path!r} cannot be looked up ({error}); check the path") from error
    if suffix_of(path) not in suffixes:
        raise DataError(f"{path} is of another kind; this source reads files that end in {told}")
    return [path]


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
        raise DataError(f"{path} is a pipe or a device, not a regular file. Give a file")


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
            if wide := WIDE.get(file.peek(2)[:2]):  # pyright: ignore[reportAttributeAccessIssue]
                raise DataError(f"{path} is {wide}; write it again as UTF-8, for example by iconv")
            yield file  # pyright: ignore[reportReturnType]
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read to its end ({type(error).__name__}: {error}); get it again"
        ) from error
