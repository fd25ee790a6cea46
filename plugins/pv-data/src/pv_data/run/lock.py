"""One process at a time for a run folder."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from pv_rl.errors import SetupError

__all__ = ["locked"]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for as long as this lasts; the lock ends with the process, however that ends.

    Raises:
        SetupError: another process holds it.
    """
    with (folder / "run.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(
                f"{folder} is being worked on by another pv-data; wait for it or stop it"
            ) from error
        yield
