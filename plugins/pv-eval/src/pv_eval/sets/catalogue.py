"""Catalogue of sets: `--set NAME:PATH` to an `EvalSet`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from pv_eval.sets.base import EvalSet
from pv_eval.sets.error_types import read_error_types
from pv_eval.sets.published import published
from pv_eval.sets.rubrics import with_rubrics
from pv_eval.sets.sources import read_curated, read_source, read_style
from pv_eval.sets.tables import read_graded, read_published, read_table
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["SETS", "open_set"]

OWN: Mapping[str, Callable[..., EvalSet]] = {
    "curated": read_curated,
    "style": read_style,
    "error_types": read_error_types,
    "graded": read_graded,
    "table": read_table,
}
SETS: Mapping[str, Callable[..., EvalSet]] = {
    name: OWN.get(name) or partial(read_published if one.form else read_source, name)
    for name, one in published().items()
}
"""Reader by name (`published.yaml` describes them). Any other name is that of a source of pv-data."""
RUBRICS = "rubrics"


def open_set(spec: str, options: Mapping[str, Any] | None = None) -> EvalSet:
    """The set of `NAME` or `NAME:PATH`.

    Notes say where the counts differ from those of the published file, and whether the reader was tried on it.

    Args:
        spec: a name of `SETS` or of a source, and a path where it needs one.
        options: of the reader; and for every set `rubrics`, see `with_rubrics`.

    Raises:
        ConfigError: the set or an option is unknown.
        DataError: see `build_set`.
    """
    name, _, place = spec.partition(":")
    path = Path(place) if place else None
    read = SETS.get(name) or _source(name)
    if path is None and getattr(read, "func", None) is not read_source:
        raise ConfigError(f"the set {name} needs a file or folder: --set {name}:PATH")
    given = dict(options or {})
    rubrics = given.pop(RUBRICS, None)
    known = [one for one in signature(read).parameters.values() if one.name not in ("path", "source")]
    names = [*(one.name for one in known), RUBRICS]
    unknown = sorted(given.keys() - set(names))
    if unknown and not any(one.kind is Parameter.VAR_KEYWORD for one in known):
        raise ConfigError(
            f"the set {name} has no option {', '.join(unknown)}.{nearest(unknown[0], names)} It has {', '.join(names)}"
        )
    found = read(path, **given)
    if rubrics is not None:
        found = with_rubrics(found, Path(str(rubrics)))
    entry = published().get(name)
    if entry is None:
        return found
    notes = [entry.differences(found.counts)] if not given else []
    if entry.page and not entry.tried:
        notes.append(f"The reader of {name} was {entry.built}; it was not tried on the published file.")
    return replace(found, notes=(*found.notes, *filter(None, notes)))


def _source(name: str) -> Callable[..., EvalSet]:
    from pv_data.plugins import SOURCES

    if not name or SOURCES.find(name) is None:
        raise ConfigError(
            f"the set {name!r} is unknown.{nearest(name, SETS)} Expected {', '.join(SETS)}, or a source of pv-data"
        )
    return partial(read_source, name)
