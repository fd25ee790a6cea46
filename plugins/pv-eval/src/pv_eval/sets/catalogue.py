"""Catalogue of sets: `--set NAME:PATH` to an `EvalSet`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from pv_eval.sets.base import EvalSet
from pv_eval.sets.error_types import read_error_types
from pv_eval.sets.sources import read_curated, read_source, read_style
from pv_eval.sets.tables import read_graded, read_gradingbench, read_proofbench, read_table
from pv_rl.errors import ConfigError

__all__ = ["SETS", "open_set"]

SETS: Mapping[str, Callable[..., EvalSet]] = {
    "curated": read_curated,
    "style": read_style,
    "error_types": read_error_types,
    "opc": partial(read_source, "opc"),
    "proofbench": read_proofbench,
    "gradingbench": read_gradingbench,
    "graded": read_graded,
    "processbench": partial(read_source, "processbench"),
    "dsmathv2": partial(read_source, "dsmathv2"),
    "prmbench": partial(read_source, "prmbench"),
    "table": read_table,
}
"""Reader by name (docs/eval_command.md describes them). Any other name is that of a source of pv-data."""


def open_set(spec: str, options: Mapping[str, Any] | None = None) -> EvalSet:
    """The set of `NAME` or `NAME:PATH`.

    Args:
        spec: a name of `SETS` or of a source, and a path where it needs one.
        options: of the reader.

    Raises:
        ConfigError: the set or an option is unknown.
        DataError: see `build_set`.
    """
    name, _, place = spec.partition(":")
    path = Path(place) if place else None
    read = SETS.get(name) or _source(name)
    if path is None and not isinstance(read, partial):
        raise ConfigError(f"the set {name} needs a file or folder: --set {name}:PATH")
    given = dict(options or {})
    known = [one for one in signature(read).parameters.values() if one.name not in ("path", "source")]
    names = [one.name for one in known]
    unknown = sorted(given.keys() - set(names))
    if unknown and not any(one.kind is Parameter.VAR_KEYWORD for one in known):
        raise ConfigError(f"the set {name} has no option {', '.join(unknown)}; it has {', '.join(names)}")
    return read(path, **given)


def _source(name: str) -> Callable[..., EvalSet]:
    from pv_data.plugins import SOURCES
    from pv_rl.plugins import nearest

    if not name or SOURCES.find(name) is None:
        raise ConfigError(
            f"the set {name!r} is unknown.{nearest(name, SETS)} Expected {', '.join(SETS)}, or a source of pv-data"
        )
    return partial(read_source, name)
