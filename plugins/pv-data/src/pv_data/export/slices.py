"""The parts of a slice's name."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Slice"]


@dataclass(frozen=True, kw_only=True, order=True)
class Slice:
    """Source x method x model, the unit of an audit."""

    source: str
    method: str
    model: str
    """`-` for none."""

    @classmethod
    def read(cls, name: str) -> Slice:
        """From `source/method/model`. A model may have a `/` in its name, as on the hub; a source may not."""
        source, method, model = (*name.split("/", 2), "-", "-")[:3]
        return cls(source=source, method=method, model=model)
