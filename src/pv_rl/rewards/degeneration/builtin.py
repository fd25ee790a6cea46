"""Our rules, entered through the hook that plugins use."""

from __future__ import annotations

from pv_rl.hookspecs import hookimpl
from pv_rl.rewards.degeneration.gate import BUILTIN_RULES
from pv_rl.rewards.degeneration.rule import DegenerationRule

__all__ = ["pv_rl_degeneration_rules"]


@hookimpl
def pv_rl_degeneration_rules() -> list[DegenerationRule]:
    return list(BUILTIN_RULES)
