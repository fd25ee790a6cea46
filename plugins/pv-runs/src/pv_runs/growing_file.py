"""Growing file: each new line once, without reading again what was read before, like `tail -f`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["LONGEST_LINE", "Replaced", "Tail", "last_lines", "open_regular"]

LONGEST_LINE = 4 * 2**20
"""Bytes. verl's lines of metrics have about 8,000."""
CHUNK = 2**20
"""Bytes of one read."""
MARK = 64
"""Bytes before the place that was read up to; they tell a file that was written anew from one that has grown."""


class Replaced(Exception):
    """The file is not the one that was read before: start anew."""


class Tail:
    """What has come to a file since the last look. A line longer than `LONGEST_LINE` is skipped and counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0
        """Lines that were too long."""
        self._identity: tuple[int, int] | None = None
        self._read, self._mark, self._rest = 0, b"", b""
        self._skipping = False

    @property
    def began(self) -> bool:
        """Whether anything has been read."""
        return self._read > 0

    @property
    def rest(self) -> bytes:
        """What follows the last line end."""
        return self._rest

    def look(self) -> Iterator[bytes]:
        """New lines without their ends. A last line that has no end yet waits for the next look.

        Raises:
            Replaced: the file became shorter, or another one has its name.
            OSError: it is not there, is no regular file or cannot be read.
        """
        with open_regular(self.path) as file:
            self._check(file)
            file.seek(self._read)
            while new := file.read(CHUNK):
                self._read += len(new)
                self._mark = (self._mark + new)[-MARK:]
                *lines, self._rest = (self._rest + new).split(b"\n")
                for line in lines:
                    if self._skipping or len(line) > LONGEST_LINE:
                        self._skipping = False
                        self.skipped += 1
                    elif line.strip():
                        yield line
                if (
                    self._skipping or len(self._rest) > LONGEST_LINE
                ):  # nothing of it is kept until its end comes
                    self._rest, self._skipping = b"", True

    def _check(self, file: BinaryIO) -> None:
        state = os.fstat(file.fileno())
        identity = (state.st_dev, state.st_ino)
        file.seek(max(0, self._read - len(self._mark)))
        if (self._identity or identity) != identity or file.read(len(self._mark)) != self._mark:
            raise Replaced(str(self.path))
        self._identity = identity


def open_regular(path: Path) -> BinaryIO:
    """Open to read; a pipe or a device, for which one could wait for ever, is an error.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no regular file")
    return os.fdopen(number, "rb")


def last_lines(path: Path, most: int) -> list[bytes]:
    """Whole lines among the last `most` bytes, the last one first.

    Raises:
        OSError: see `open_regular`.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        begin = max(0, size - most)
        file.seek(begin)
        *lines, _ = file.read(most).split(b"\n")  # what follows the last line break is still being written
    return [line for line in reversed(lines[1:] if begin else lines) if line.strip()]
