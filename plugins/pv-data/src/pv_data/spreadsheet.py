"""Cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

__all__ = ["no_formula"]


def no_formula(text: str) -> str:
    """The text, with a quote before what a spreadsheet would compute: texts and names are from outside. `-` is none."""
    runs = text[:1] in ("=", "+", "@", "\t", "\r") or (text[:1] == "-" and len(text) > 1)
    return f"'{text}" if runs else text
