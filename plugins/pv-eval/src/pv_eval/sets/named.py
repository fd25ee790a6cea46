"""The sets by name, as `--set NAME:PATH` says them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pv_eval.sets.base import EvalSet
from pv_eval.sets.error_types import read_error_types
from pv_eval.sets.from_run import read_curated, read_style
from pv_eval.sets.from_source import read_source
from pv_eval.sets.graded import read_graded, read_gradingbench, read_proofbench
from pv_eval.sets.plain import read_table
from pv_rl.errors import ConfigError

__all__ = ["SETS", "open_set"]

SETS: Mapping[str, tuple[Callable[..., EvalSet], str]] = {
    "curated": (read_curated, "the test split of a pv-data run"),
    "style": (read_style, "proofs of a pv-data run that were rewritten in a style"),
    "error_types": (read_error_types, "wrong proofs by kind of error: a plain file, or PRMBench"),
    "opc": (partial(read_source, "opc"), "Open Proof Corpus, people's labels"),
    "proofbench": (read_proofbench, "ProofBench, points of 7"),
    "gradingbench": (read_gradingbench, "IMO-GradingBench, points of 7"),
    "graded": (read_graded, "a plain file with points"),
    "processbench": (partial(read_source, "processbench"), "ProcessBench, first wrong step"),
    "dsmathv2": (partial(read_source, "dsmathv2"), "outputs of DeepSeekMath-V2, people's points"),
    "prmbench": (partial(read_source, "prmbench"), "PRMBench, spoiled and unspoiled"),
    "table": (read_table, "a plain file with problem, proof and label"),
}
"""Reader and meaning. Any other name is that of a source of pv-data."""


def open_set(spec: str, options: Mapping[str, Any] | None = None) -> EvalSet:
    """The set of `NAME` or `NAME:PATH`.

    Args:
        spec: a name of `SETS` or of a source, and a path where it needs one.
        options: of the reader.

    Raises:
        ConfigError: there is no such set, or an option that it does not know.
        DataError: see `build_set`.
    """
    name, _, place = spec.partition(":")
    path = Path(place) if place else None
    if name not in SETS:
        return _of_source(name, path, dict(options or {}))
    read, _ = SETS[name]
    if path is None and not isinstance(read, partial):
        raise ConfigError(f"the set {name} needs a file or folder: --set {name}:PATH")
    return _call(name, read, path, dict(options or {}))


def _of_source(name: str, path: Path | None, options: dict[str, Any]) -> EvalSet:
    from pv_data.plugins import SOURCES
    from pv_rl.plugins import nearest

    if not name or SOURCES.find(name) is None:
        raise ConfigError(
            f"there is no set {name!r}.{nearest(name, SETS)} There are {', '.join(SETS)}, and the sources of pv-data"
        )
    return _call(name, partial(read_source, name), path, options)


def _call(name: str, read: Callable[..., EvalSet], path: Path | None, options: dict[str, Any]) -> EvalSet:
    from inspect import Parameter, signature

    known = signature(read).parameters
    free = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    strange = [] if free else sorted(options.keys() - (known.keys() - {"path", "source"}))
    if strange:
        allowed = ", ".join(name for name in known if name not in ("path", "source")) or "none"
        raise ConfigError(f"the set {name} has no option {', '.join(strange)}; it has {allowed}")
    return read(path, **options)
