"""Which loss_agg_mode of a verl config is ours."""

from __future__ import annotations

import re

from pv_rl.losses import LossMode, resolve_mode
from pv_rl.plugins import VERL_MODES, loss_mode_entry

__all__ = ["OWN_WAY", "find_mode"]

OWN_WAY = frozenset({"sapo", "geo_mean"})
"""The policy losses of verl 0.9 that aggregate without regard to loss_agg_mode (core_algos.py)."""


def find_mode(loss_agg_mode: object) -> LossMode | None:
    """The mode that a config names, or None if the name is not one of ours: then it is verl's to take or refuse.

    verl's own names are asked first, so that a stock run never loads a plugin.

    Raises:
        LossModeError: the name is ours and the rest of the spec cannot be read.
        PluginError: two plugins claim the name.
    """
    if not isinstance(loss_agg_mode, str) or loss_agg_mode in VERL_MODES:
        return None
    name = re.split("[:@]", loss_agg_mode, maxsplit=1)[0]
    return resolve_mode(loss_agg_mode) if loss_mode_entry(name) is not None else None
