"""Folders that tests read from."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT", "SHARED", "SUPPORT"]

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
SHARED = ROOT.parent / "shared"
"""Real data beside a checkout. Tests skip where it is absent."""
