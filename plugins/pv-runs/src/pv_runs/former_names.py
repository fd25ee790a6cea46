"""Former metric names: logs of earlier versions are read under the names of today.

A metric's name must not be a folder of another's (`acc` and `acc/label_true`): MLflow's file store keeps a file for
each metric, and refused what came after such a pair in a step.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["present_name"]

FORMER = (
    (
        re.compile(r"(pv_rl/(?:reward|held_out|held_out/slice/.+)/acc)/(label_(?:true|false))", re.DOTALL),
        r"\1_\2",
    ),
    (re.compile(r"(pv_rl/weight_share/(?:length_q[1-4]|advantage_[a-z]+))/(verdict_[a-z]+)"), r"\1_\2"),
    (re.compile(r"(pv_rl/held_out/length)"), r"\1/all"),
)
"""Patterns of whole names, with what each is called now."""


@lru_cache(maxsize=4096)
def present_name(key: str) -> str:
    """`pv_rl/reward/acc/label_true` is `pv_rl/reward/acc_label_true` now; other names are as they were."""
    if not key.startswith("pv_rl/"):
        return key
    return next((match.expand(now) for was, now in FORMER if (match := was.fullmatch(key))), key)
