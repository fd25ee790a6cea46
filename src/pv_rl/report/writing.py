"""Several files that are there all together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pv_rl.files import write_atomically

__all__ = ["write_together"]


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write all beside their places, then put them in place: on an error while writing, none of them has changed."""
    if not files:
        return
    (path, data), *others = files.items()

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)
        write_together(dict(others))  # before this one takes its place

    write_atomically(path, write)
