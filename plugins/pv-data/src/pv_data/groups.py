"""Names that belong together, directly or through others."""

from __future__ import annotations

__all__ = ["Groups"]


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
