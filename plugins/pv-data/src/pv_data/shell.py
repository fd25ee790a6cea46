"""Exit of a command on an error that the user can fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from pv_judge.pages.text import visible
from pv_rl.errors import PvRlError

__all__ = ["errors_to_exit"]


@contextmanager
def errors_to_exit() -> Iterator[None]:
    """Print a `PvRlError` or `OSError`, without control characters, and exit with code 2."""
    try:
        yield
    except (PvRlError, OSError) as error:
        typer.echo(f"Error: {visible(str(error))}", err=True)
        raise typer.Exit(2) from None
