"""Ids: an order by a hash, which is the same whatever other ids there are, and groups (union-find)."""

from __future__ import annotations

from hashlib import sha256

__all__ = ["PILOT", "Groups", "digest", "place"]


PILOT = "pilot"
"""The order of questions whose first are the pilot's, those of `generate.share` and those of an audit."""


def digest(purpose: str, seed: int, one: str) -> bytes:
    """By which ids are ordered; another purpose or seed is another order."""
    return sha256(f"{purpose}\0{seed}\0{one}".encode("utf-8", "surrogatepass")).digest()


def place(purpose: str, seed: int, one: str) -> float:
    """Where an id stands in the order, in [0, 1): about that part of all ids comes before it."""
    return int.from_bytes(digest(purpose, seed, one)[:6], "big") / 2**48


class Groups:
    """Union-find. A group is called after its smallest name, so that its name does not hang on the order of joining."""

    def __init__(self) -> None:
        self._leader: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The group of a name; one that has not been joined is a group of its own."""
        leader = self._leader
        while (above := leader.setdefault(name, name)) != name:
            leader[name] = name = leader[above]  # the path is halved on the way
        return name

    def join(self, one: str, other: str) -> None:
        """Make one group of two."""
        first, second = sorted((self.find(one), self.find(other)))
        self._leader[second] = first
