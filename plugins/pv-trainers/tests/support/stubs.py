"""Stub modules: replace packages that a trainer imports and that the functions under test do not use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

__all__ = ["stubbed"]


class _Stub(ModuleType):
    def __init__(self, name: str, attribute: Callable[[str], object]) -> None:
        super().__init__(name)
        self.attribute = attribute

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.attribute(name)


class _Stubs(MetaPathFinder, Loader):
    def __init__(self, packages: tuple[str, ...], attribute: Callable[[str], object]) -> None:
        self.packages, self.attribute = packages, attribute

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Stub(spec.name, self.attribute)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def stubbed(
    *packages: str, attribute: Callable[[str], object] = lambda name: MagicMock(name=name)
) -> Iterator[None]:
    """Inside, an import of a missing one of `packages` gives a stub; afterwards no other test finds it.

    Args:
        packages: names of packages.
        attribute: makes an attribute of a stub, from its name.
    """
    finder = _Stubs(packages, attribute)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Stub)]:
            del sys.modules[name]
