"""Exit codes of our commands: 1 for an error, 3 for a run that the same command resumes, 130 after Ctrl-C; `--version`.

2 is a wrong command line, by typer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from pv_rl.errors import PvRlError

__all__ = ["errors_to_exit", "version_option"]


def version_option(version: str) -> Any:
    """The option `--version` of a command line: prints the version and exits."""

    def show(asked: bool) -> None:
        if asked:
            typer.echo(version)
            raise typer.Exit

    return typer.Option("--version", help="Print the version.", callback=show, is_eager=True)


@contextmanager
def errors_to_exit() -> Iterator[None]:
    """Print an error that the user can fix, without control characters, and exit. It decorates a command, too."""
    try:
        yield
    except (PvRlError, OSError) as error:
        from rich.console import Console
        from rich.markup import escape

        text = "".join(
            c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(error)
        )
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"[bold red]error[/] {escape(text)}", highlight=False)
        raise typer.Exit(getattr(error, "exit_code", 1)) from error
    except KeyboardInterrupt:
        typer.echo("stopped; nothing is left running", err=True)
        raise typer.Exit(130) from None
