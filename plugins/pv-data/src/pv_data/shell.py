"""What the commands share: the exit on an error that the user can fix, and lists of names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from pv_judge.pages.text import visible
from pv_rl.errors import PvRlError
from pv_rl.plugins import Registry

__all__ = ["errors_to_exit", "print_registry"]


@contextmanager
def errors_to_exit() -> Iterator[None]:
    """Print a `PvRlError` or `OSError`, without control characters, and exit with code 2."""
    try:
        yield
    except (PvRlError, OSError) as error:
        typer.echo(f"Error: {visible(str(error))}", err=True)
        raise typer.Exit(2) from None


def print_registry(registry: Registry) -> None:
    """Print the names that a config can give."""
    from pv_judge.pages.blocks import Column, Table
    from pv_judge.pages.terminal import print_blocks, standard_output

    known = registry.entries()
    columns: list[Column[str]] = [
        Column("name", lambda name: name, left=True),
        Column("what it is", lambda name: known[name].meaning, left=True, wrap=True),
        Column("from", registry.owner, left=True),
    ]
    print_blocks([Table.of(columns, known)], standard_output(200))
