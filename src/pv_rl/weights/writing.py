"""Whether a file can be written, asked before any work."""

from __future__ import annotations

from pathlib import Path

from pv_rl.errors import DataError

__all__ = ["check_target"]


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
