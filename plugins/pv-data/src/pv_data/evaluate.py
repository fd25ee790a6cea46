"""Old import path of the package `pv_eval`, kept for one release."""

from __future__ import annotations

import warnings
from importlib import import_module


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    warnings.warn(
        f"pv_data.evaluate.{name} is pv_eval.{name} now; import it from pv_eval",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module("pv_eval"), name)
