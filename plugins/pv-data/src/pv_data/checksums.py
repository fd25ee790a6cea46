"""Checksum of a Parquet file, kept in the file itself: a CRC-32 of all its other bytes.

It is a line in front of the footer, where readers of Parquet do not look (they find the footer from the end of the
file), so that a part and its checksum take their place together. A file without it, of an earlier version or written
by another program, is not checked.
"""

from __future__ import annotations

import mmap
import zlib
from functools import lru_cache
from pathlib import Path

from pv_rl.errors import DataError

__all__ = ["add_checksum", "checksum_of", "remedy", "verify"]

MARK = b"pv_data.crc32="
LINE = len(MARK) + 9
"""Bytes of the line: eight hex digits and a line break come after the mark."""
END = 8
"""Bytes behind the footer: its length and `PAR1`."""
BLOCK = 1 << 20
STAGES = {
    **dict.fromkeys(("collected", "problems", "proofs"), "collect"),
    "generated": "generate",
    **dict.fromkeys(("judgments", "labels"), "judge"),
}
"""By the folder of a part."""


def add_checksum(path: Path) -> None:
    """Put the line into a Parquet file that has just been written."""
    with path.open("r+b") as file:
        size = file.seek(-END, 2) + END
        start = size - END - int.from_bytes(file.read(4), "little")
        file.seek(start)
        footer = file.read()
        file.seek(0)
        crc, left = 0, start
        while left:
            block = file.read(min(left, BLOCK))
            crc, left = zlib.crc32(block, crc), left - len(block)
        file.seek(start)
        file.write(MARK + b"%08x\n" % zlib.crc32(footer, crc) + footer)


def checksum_of(path: Path) -> str:
    """The checksum that the file says it has; empty if it says none."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END))
        file.seek(max(0, size - END - int.from_bytes(file.read(4), "little") - LINE))
        line = file.read(LINE)
    return line[len(MARK) : -1].decode("ascii", "replace") if line.startswith(MARK) else ""


def verify(path: Path) -> None:
    """Compare a file with its checksum, once for each version of the file in a process.

    Raises:
        DataError: they differ. It says how to get the file back.
        OSError: it cannot be read.
    """
    found = path.stat()
    _verify(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=65_536)
def _verify(path: Path, inode: int, size: int, changed: int) -> None:
    if size <= LINE + END:
        return
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw,
        memoryview(raw) as view,
    ):
        start = size - END - int.from_bytes(raw[-END:-4], "little") - LINE
        if start < 0 or raw[start : start + len(MARK)] != MARK:
            start = raw.rfind(MARK)  # the length of the footer may be what is damaged
            if start < 0:
                return
        line = raw[start + len(MARK) : start + LINE]
        crc = 0
        for begin, end in ((0, start), (start + LINE, size)):
            for at in range(begin, end, BLOCK):
                crc = zlib.crc32(view[at : min(end, at + BLOCK)], crc)
    if line != b"%08x\n" % crc:
        raise DataError(f"{path} is damaged: its bytes do not fit its checksum. {remedy(path)}")


def remedy(path: Path) -> str:
    """How to get a part of a run back."""
    folder, stage = path.parent.name, path.name.partition("-")[0]
    stage = stage if folder == "aside" else STAGES.get(folder, "")
    if stage:
        return f"Restore it, or do its stage again with --redo {stage} (answers that were kept cost nothing)"
    if folder == "marks":
        return "Restore it, or delete it and record its sheet again (pv-data audit record)"
    return "Restore it, or make it again"
