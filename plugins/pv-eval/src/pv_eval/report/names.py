"""Names in a report: those of several things that share a name, told apart by what differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from pv_judge.pages.text import plural

__all__ = ["in_title", "tails", "tell_apart"]

MOST = 3
"""Names in a title."""


def in_title(names: Iterable[str]) -> str:
    """Different names, or of more than three how many: `a, b`, `6 verifiers`."""
    different = list(dict.fromkeys(names))
    return ", ".join(different) if len(different) <= MOST else plural(len(different), "verifier")


def tell_apart(names: Sequence[str], details: Sequence[Sequence[str]]) -> list[str]:
    """Names with the details that differ among those of one name; a name that occurs once stays as it is.

    Example: `["a", "a", "b"]` with `[("seed 1", "x"), ("seed 2", "y"), ("seed 1", "z")]` is
    `["a (seed 1)", "a (seed 2)", "b"]`.

    Args:
        names: of N things.
        details: of each, the same number; the first that tell apart are chosen. The last differ for all.
    """
    told = _with_details(list(names), details)
    # a further name may be another one with its details
    return told if len(set(told)) == len(told) else _with_details(told, [one[-1:] for one in details])


def _with_details(names: list[str], details: Sequence[Sequence[str]]) -> list[str]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        places[name].append(place)
    for name, same in places.items():
        chosen: list[tuple[str, ...]] = [() for _ in same]
        for values in zip(*(details[place] for place in same), strict=True):
            longer = [(*one, value) for one, value in zip(chosen, values, strict=True)]
            if len(set(longer)) > len(set(chosen)):
                chosen = longer
        for place, one in zip(same, chosen, strict=True):
            names[place] = f"{name} ({', '.join(one)})" if one else name
    return names


def tails(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of different paths that differ: `t0/run` and `t1/run`."""
    parts = [folder.resolve().parts for folder in folders]
    for length in range(1, max(map(len, parts), default=0) + 1):
        ends = ["/".join(one[-length:]) for one in parts]
        if len(set(ends)) == len(ends):
            return ends
    return [str(folder) for folder in folders]
