"""Command line of our programs: exit codes, errors as one line on stderr, and commands of packages not installed.

0: success. 1: an error or a failed check. 2: a wrong command line. 3: a run to resume. 130: Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from pv_rl.errors import PvRlError
from pv_rl.installing import how_to_install

__all__ = ["errors_to_exit", "new_app", "version_option"]


def new_app(name: str, about: str, elsewhere: Mapping[str, str]) -> typer.Typer:
    """A program whose commands end by `errors_to_exit`.

    Args:
        name: of the program.
        about: the first line of its --help.
        elsewhere: the package of each command that another package adds.
    """

    class Commands(TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] in elsewhere and self.get_command(ctx, args[0]) is None:
                package = elsewhere[args[0]]
                text = f"`{name} {args[0]}` comes with the package {package}, which is not installed"
                ctx.fail(f"{text}. {how_to_install(package)}")
            return super().resolve_command(ctx, args)

        def invoke(self, ctx: Any) -> Any:
            try:
                with errors_to_exit():
                    return super().invoke(ctx)
            except typer.BadParameter as error:  # newer versions of typer quote pydantic
                text = error.message.removeprefix("Value error, ").partition(", unable to parse")[0]
                text = text.replace("a valid integer", "a whole number").replace("a valid", "a")
                text = text.replace("be greater", "be a number greater")
                text = text.replace("be less", "be a number less")
                error.message = text.replace("Input should be", "expected")
                raise

    # Without rich's boxes a --help has half the lines.
    options: Any = {"pretty_exceptions_enable": False, "rich_markup_mode": None}
    return typer.Typer(name=name, help=about, cls=Commands, no_args_is_help=True, **options)


def version_option(version: str) -> Any:
    """The option `--version` of a command line: prints the version and exits."""

    def show(asked: bool) -> None:
        if asked:
            typer.echo(version)
            raise typer.Exit

    return typer.Option("--version", help="Print the version.", callback=show, is_eager=True)


@contextmanager
def errors_to_exit() -> Iterator[None]:
    """Print an error that the user can fix, without control characters, and exit."""
    try:
        yield
    except BrokenPipeError:  # of `| head`: typer exits without a word
        raise
    except (PvRlError, OSError) as error:
        from rich.console import Console
        from rich.markup import escape

        said = str(error)
        if isinstance(error, OSError) and error.filename:
            problem = "it is a file; name a folder" if isinstance(error, FileExistsError) else error.strerror
            said = f"{error.filename}: {problem}"
        text = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in said)
        Console(stderr=True, soft_wrap=True).print(f"[bold red]error[/] {escape(text)}", highlight=False)
        raise typer.Exit(getattr(error, "exit_code", 1)) from error
    except KeyboardInterrupt:
        typer.echo("stopped; nothing is left running", err=True)
        raise typer.Exit(130) from None
