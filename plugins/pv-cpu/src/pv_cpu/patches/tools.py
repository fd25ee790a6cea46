"""What the patches share: waiting for a module, checking it, replacing what it exports."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from pv_cpu.errors import VerlChangedError

__all__ = ["after_import", "attribute", "is_patched", "mark", "replace_everywhere", "require_parameters"]

_SENTINEL = "_pv_cpu_patch"
_waiting: set[tuple[str, str]] = set()


def after_import(module_name: str, patch: Callable[[ModuleType], None]) -> None:
    """Run ``patch(module)`` once the module has been imported, or now if it has been already."""
    key = (module_name, f"{patch.__module__}.{patch.__qualname__}")
    if key in _waiting:
        return
    _waiting.add(key)
    wrapt.register_post_import_hook(patch, module_name)


def mark(replacement: Any) -> Any:
    """Put the sentinel on a replacement, so that it is not wrapped a second time."""
    setattr(replacement, _SENTINEL, True)
    return replacement


def is_patched(current: Any) -> bool:
    return _SENTINEL in vars(current)


def changed(what: str) -> VerlChangedError:
    """The error that says which verl is imported and which name in it is not as expected."""
    verl = sys.modules.get("verl")
    version = f"verl {getattr(verl, '__version__', '?')} in {', '.join(getattr(verl, '__path__', '?'))}"
    return VerlChangedError(
        f"{version} is not as pv-cpu expects it: {what}. pv-cpu was tested on verl 0.9.1; "
        "install that version, or a pv-cpu that knows this one."
    )


def attribute(owner: Any, name: str) -> Any:
    """``owner.name``, or an error that names the verl version."""
    if not hasattr(owner, name):
        raise changed(f"{getattr(owner, '__name__', owner)} has no {name!r}")
    return getattr(owner, name)


def require_parameters(function: Callable[..., Any], *names: str) -> None:
    """Check that the function still takes the parameters that a patch passes."""
    parameters = inspect.signature(function).parameters
    missing = [name for name in names if name not in parameters]
    if missing:
        raise changed(
            f"{function.__module__}.{function.__qualname__}({', '.join(parameters)}) takes no {missing}"
        )


def replace_everywhere(owner: ModuleType, name: str, replacement: Any) -> None:
    """Set ``owner.name`` and the same name in every verl module that imported the original by name."""
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("verl.") and vars(module).get(name) is original:
            setattr(module, name, replacement)
