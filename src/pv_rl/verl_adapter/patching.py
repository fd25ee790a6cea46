"""Replace a function of verl, also where another module imported it by name before us."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["replace_everywhere"]


def replace_everywhere(module: ModuleType, name: str, replacement: Callable[..., Any]) -> None:
    """Set `module.name`, and every other loaded module's `name` that was the same object.

    Symptom without it: a plugin or an external module of verl that loads before us has imported the function
    by name, and those who use that reference go on without us.
    """
    original = getattr(module, name)
    for loaded in [module, *sys.modules.values()]:
        if isinstance(loaded, ModuleType):
            # Not vars(): that would load a module that is waiting to be loaded lazily.
            namespace = object.__getattribute__(loaded, "__dict__")
            if namespace.get(name) is original:
                namespace[name] = replacement
