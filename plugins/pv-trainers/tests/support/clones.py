"""Clones of trainers that are not on PyPI: puts them on the path, with stubs for packages that they lack."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stubs import stubbed

__all__ = ["clone"]


@contextmanager
def clone(variable: str, *folders: str, stubs: Sequence[str]) -> Iterator[Path]:
    """Import from a clone inside of this; the test module is skipped where the variable is not set.

    Args:
        variable: environment variable with the root of the clone, which is given.
        folders: inside the clone, what goes on the path.
        stubs: packages that the clone imports and that the called functions do not use. Those that are absent are stubs
            until the end, so that other trainers in the process do not find them.
    """
    root = os.environ.get(variable)
    if not root:
        pytest.skip(f"{variable} is not set: the root of a clone of the trainer", allow_module_level=True)
    sys.path += [path for folder in folders if (path := str(Path(root, folder))) not in sys.path]
    with stubbed(*stubs, attribute=lambda name: _Anything(name, (), {})):
        yield Path(root)


class _Anything(type):
    """A class that takes any subscript, is any attribute, and is a decorator that changes nothing."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and isinstance(args[0], Callable) else lambda decorated: decorated

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls
