"""Source files: one file, or those of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pv_judge.rowfiles.files import suffix_of
from pv_rl.errors import DataError

__all__ = ["files"]


def files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file, or those of the folder with one of these suffixes, in order of their names; folders in it are not read.

    Links are followed, and one that leads nowhere is a file that cannot be read. `.gz` may follow a suffix, but for
    Parquet.

    Raises:
        DataError: there is none, or what there is is no file (a pipe, a device).
    """
    told = ", ".join(suffixes)
    try:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if not (one.is_dir() or one.name.startswith(".")))
            found = [one for one in inside if suffix_of(one) in suffixes]
            if not found:
                raise DataError(f"the folder {path} has no file that ends in {told}; give the one that has")
            return found
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise DataError(f"{path} {what}; give a file that ends in {told}, or a folder of such")
    except (OSError, ValueError) as error:  # a loop of links, a name too long; a NUL in the name
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path!r} cannot be looked up ({error}); check the path") from error
    if suffix_of(path) not in suffixes:
        raise DataError(f"{path} is of another kind; this source reads files that end in {told}")
    return [path]
