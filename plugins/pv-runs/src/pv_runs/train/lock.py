"""One process at a time for a run."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from pv_rl.errors import SetupError

__all__ = ["locked"]

LOCK = "run.lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold a run's lock; who inherits the descriptor that is yielded holds it too, until it ends.

    Raises:
        SetupError: somebody else holds it.
    """
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(
                f"{folder} is running: another pv-rl train, or the verl that one started, has {LOCK}. Stop it with "
                "Ctrl-C there, or touch pv_rl_stop in its folder of checkpoints"
            ) from error
        yield file.fileno()
