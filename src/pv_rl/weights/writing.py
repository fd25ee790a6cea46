"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pv_rl.errors import DataError

__all__ = ["check_target", "write_whole"]


def check_target(option: str, path: Path) -> None:
    """Say before any work that a file cannot be written.

    Raises:
        DataError: the path is a folder, or its folder is missing.
    """
    if path.is_dir():
        raise DataError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise DataError(
            f"{option} {path}: there is no folder {path.parent}; make it first, or name another file"
        )


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, and put it in its place; an earlier file there is replaced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
