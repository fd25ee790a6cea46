"""A folder that is there whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pv_rl.errors import ConfigError

__all__ = ["whole_folder"]

MARK = ".pv_data_export"
"""A file that says that we made the folder, and may replace it."""


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path` at the end; on an error `path` stays as it was.

    What processes that were killed left half made is cleared away.

    Two renames, since no file system exchanges folders by one: a machine that dies between them leaves the old folder
    beside it as `.NAME.PID.old`.

    Raises:
        ConfigError: there is something that pv-data did not make.
    """
    path = path.resolve()
    if path.exists() and not (path / MARK).exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ConfigError(f"{path} exists and is no export of pv-data; name a new folder, or move it away")
    new, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        (new / MARK).write_text("made by pv-data: exporting again replaces this folder\n", encoding="utf-8")
        if path.exists():
            path.rename(old)
        try:
            new.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        for left in (old, *_leftovers(path)):
            shutil.rmtree(left, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _leftovers(path: Path) -> list[Path]:
    """What processes that were killed left beside `path`."""
    found = [one for end in ("part", "old") for one in path.parent.glob(f".{glob.escape(path.name)}.*.{end}")]
    return [
        one for one in found if one.name.split(".")[-2].isdigit() and not _runs(int(one.name.split(".")[-2]))
    ]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True
