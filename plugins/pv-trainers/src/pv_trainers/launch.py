"""Start-up of a launcher: one line instead of a traceback if the trainer is missing or a setting is refused."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pv_rl.errors import PvRlError

__all__ = ["run_script", "starting"]


@contextmanager
def starting(*packages: str, install: str) -> Iterator[None]:
    """Exit with code 1 and a line on stderr for an error that the user can fix.

    Args:
        packages: those of the trainer. Another module that cannot be imported keeps its traceback.
        install: what to do if one of them is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in packages:
            raise
        if sys.modules.get(package) is not None:
            sys.exit(
                f"error: the installed {package} has no module {error.name}: it is another version. {install}"
            )
        sys.exit(f"error: the package {package} is not installed in {sys.prefix}. {install}")
    except PvRlError as error:
        sys.exit(f"error: {error}")


def run_script() -> None:
    """Run the script that the command line names after the launcher, as `python SCRIPT ...` would."""
    sys.argv = sys.argv[1:]
    if not os.path.exists(sys.argv[0]):
        sys.exit(f"error: there is no script {sys.argv[0]}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
