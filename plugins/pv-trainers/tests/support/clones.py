"""Clones of trainers that are not on PyPI: on the path where a variable names them, with stubs for what they lack."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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
    finder = _Stubs(frozenset(name for name in stubs if importlib.util.find_spec(name) is None))
    sys.meta_path.append(finder)
    yield Path(root)
    sys.meta_path.remove(finder)
    for name in [name for name, module in sys.modules.items() if isinstance(module, _Stub)]:
        del sys.modules[name]


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


class _Stub(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Stubs:
    """Finder and loader of the stubs."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.packages else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
