"""Filters of problems and proofs: each is a function that gives a reason to set a row aside, or None."""

from pv_data.filters.geometry import geometry
from pv_data.filters.language import language
from pv_data.filters.length import length

__all__ = ["geometry", "language", "length"]
