"""Which loss_agg_mode of a verl config is ours, and which policy losses take none."""

from __future__ import annotations

from pv_rl.losses.mode import find_mode

__all__ = ["OWN_WAY", "find_mode"]

OWN_WAY = frozenset({"sapo", "geo_mean"})
"""The policy losses of verl 0.9 that aggregate without regard to loss_agg_mode (core_algos.py)."""
