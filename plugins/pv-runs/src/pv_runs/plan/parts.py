"""What memory is made of."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Part", "Phase"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Something that takes memory."""

    name: str
    gib: float
    how: str
    """The formula with its numbers put in; bytes unless it says GiB."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What is in the memory of one place at the same time."""

    place: str
    """`training GPU`, `rollout GPU` or `rollout engine`."""
    name: str
    """When this is: `update`, `log-probs`, ..."""
    parts: tuple[Part, ...]
    available_gib: float

    @property
    def gib(self) -> float:
        """Sum of the parts."""
        return sum(part.gib for part in self.parts)

    @property
    def over_gib(self) -> float:
        """GiB that are missing; 0 where it fits."""
        return max(0.0, self.gib - self.available_gib)

    @property
    def largest(self) -> Part:
        """The part that takes most."""
        return max(self.parts, key=lambda part: part.gib)
