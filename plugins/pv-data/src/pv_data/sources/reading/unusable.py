"""Rejection reasons: why a row, or a part of it, cannot be used."""

from __future__ import annotations

from pv_data.records import Aside

__all__ = ["FILE_NOT_READ", "SHOWN", "Unusable", "aside"]

SHOWN = 2000
"""Characters of a row that an `Aside` keeps."""

FILE_NOT_READ = "file not read"
"""The reason for a whole file among several."""


class Unusable(Exception):
    """This row, or this part of it, is none of the source: it is set aside with the reason."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        """One word or a few, for counting."""
        self.detail = detail


def aside(row: str, reason: str, detail: str = "", content: object = "") -> Aside:
    """What is set aside; halves of surrogate pairs, which cannot be stored, become `?`."""
    return Aside(
        stage="source", row=row, reason=reason, detail=_storable(detail), content=_storable(str(content))
    )


def _storable(text: str) -> str:
    return text[:SHOWN].encode("utf-8", "replace").decode()
