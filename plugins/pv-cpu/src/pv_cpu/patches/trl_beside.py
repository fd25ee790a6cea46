"""TRL beside verl: lets verl ignore a TRL that has no value-head class.

Symptom without it: "cannot import name 'AutoModelForCausalLMWithValueHead' from 'trl'" when an actor starts
(``models/transformers/monkey_patch.py:354``): verl assumes that any installed TRL has the class. TRL 1.16
does not have it.

Can go when verl looks for the class instead of the package.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.models.transformers.monkey_patch"
NAME = "is_trl_available"


def patch(monkey_patch: ModuleType) -> None:
    original = tools.attribute(monkey_patch, NAME)
    if tools.is_patched(original):
        return

    def is_trl_available() -> bool:
        return original() and any(map(_has_value_head, ("trl.experimental.ppo", "trl")))

    setattr(monkey_patch, NAME, tools.mark(is_trl_available))


def _has_value_head(name: str) -> bool:
    try:
        return hasattr(importlib.import_module(name), "AutoModelForCausalLMWithValueHead")
    except ImportError:
        return False


def install() -> None:
    tools.after_import(MODULE, patch)
