"""Licences of what our packages need at run time, by the metadata of the installed distributions.

.venv/bin/python tests/support/licences.py        # a table: package, version, licence
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["licence_of", "requirements"]

OURS = re.compile(r"pv-(rl|judge|verdicts|runs|data|eval|trainers|cpu|lab)")
EXTRAS = {"pv-rl": {"torch", "verl"}}


def requirements() -> dict[str, Distribution]:
    """Everything that our installed packages need, directly or not, without our packages."""
    todo = [
        (name, EXTRAS.get(name, set()))
        for one in distributions()
        if OURS.fullmatch(name := canonicalize_name(one.name))
    ]
    found, done = {}, set[tuple[str, str]]()
    while todo:
        name, extras = todo.pop()
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for extra in {"", *extras}:
            if (name, extra) in done:
                continue
            done.add((name, extra))
            for one in map(Requirement, found[name].requires or ()):
                if one.marker is None or one.marker.evaluate({"extra": extra}):
                    todo.append((canonicalize_name(one.name), set(one.extras)))
    return {name: one for name, one in sorted(found.items()) if not OURS.fullmatch(name)}


def licence_of(one: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of the text; empty if it states none."""
    if expression := one.metadata.get("License-Expression"):
        return expression
    classifiers = one.metadata.get_all("Classifier") or ()
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    return ", ".join(named) or (one.metadata.get("License") or "").strip().partition("\n")[0]


if __name__ == "__main__":
    for name, one in requirements().items():
        print(f"{name:40} {one.version:16} {licence_of(one)}")  # noqa: T201
