"""Optional packages: an error that names the package and how to install it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pv_rl.errors import SetupError

__all__ = ["needs"]


@contextmanager
def needs(package: str, what: str, install: str) -> Iterator[None]:
    """Import inside this context: if `package` cannot be imported, the error names what needs it and how to install it.

    Raises:
        SetupError: the package is missing or does not load.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or package).partition(".")[0] != package:
            raise
        raise SetupError(f"{what} needs {package}, which cannot be imported ({error}): {install}") from error
