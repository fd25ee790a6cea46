"""Old name of `pv_eval.best_of_k`, for one release."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from pv_rl.installing import how_to_install

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name != "best_of_k":
        raise AttributeError(f"module 'pv_data.evaluate' has no attribute {name!r}")
    warnings.warn(
        "pv_data.evaluate.best_of_k is now pv_eval.best_of_k; this name goes in the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    try:
        return importlib.import_module("pv_eval").best_of_k
    except ImportError as error:
        raise ImportError(
            f"best_of_k is in the package pv-eval, which cannot be imported ({error}). "
            + how_to_install("pv-eval")
        ) from error
