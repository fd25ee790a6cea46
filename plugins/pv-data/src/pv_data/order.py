"""An order of ids by a hash: the same whatever else there is, and however it comes."""

from __future__ import annotations

from hashlib import sha256

__all__ = ["PILOT", "digest", "place"]

PILOT = "pilot"
"""The order of questions whose first are the pilot's, those of `generate.share` and those of an audit."""


def digest(purpose: str, seed: int, one: str) -> bytes:
    """By which ids are ordered; another purpose or seed is another order."""
    return sha256(f"{purpose}\0{seed}\0{one}".encode("utf-8", "surrogatepass")).digest()


def place(purpose: str, seed: int, one: str) -> float:
    """Where an id stands in the order, in [0, 1): about that part of all ids comes before it."""
    return int.from_bytes(digest(purpose, seed, one)[:6], "big") / 2**48
