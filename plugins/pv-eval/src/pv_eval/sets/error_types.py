"""The set `error_types`: wrong proofs by the kind of their error, a slice a kind.

The paper sorts wrong proofs by hand into three kinds (`KINDS`). The reader takes a plain file with a column
`error_type` beside those of `table`, or PRMBench (https://github.com/ssmisya/PRMBench, Apache-2.0), whose solutions
were corrupted in named ways; `OF_PRMBENCH` maps these to the paper's kinds, which is our reading and not the paper's.
Solutions with superfluous steps (`redundency`) are not wrong because of them and have no label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.rows import read_rows
from pv_eval.sets.sources import source_rows
from pv_eval.sets.tables import table_rows
from pv_rl.errors import DataError

__all__ = ["KINDS", "OF_PRMBENCH", "read_error_types"]

KINDS = (
    "misusing unjustified assumptions",
    "incomplete logic flow",
    "making up non-existent conclusions",
)
"""The paper's."""
OF_PRMBENCH: Mapping[str, str] = {
    "circular": KINDS[0],
    "domain_inconsistency": KINDS[0],
    "missing_condition": KINDS[1],
    "confidence": KINDS[2],
    "counterfactual": KINDS[2],
    "deception": KINDS[2],
    "step_contradiction": KINDS[2],
}
CLEAN = "no error"
CORRUPTED = "corruption: "
"""In `pv_data.sources.prmbench`, the rule of a corrupted solution's label begins with it; the kind follows."""
COLUMNS = frozenset({"original_process", "modified_process", "classification"})
READING = (
    "pv-eval maps PRMBench's kinds of errors to the paper's three: "
    + "; ".join(f"{theirs}: {ours}" for theirs, ours in OF_PRMBENCH.items())
    + "."
)


def read_error_types(
    path: Path, *, own: bool = False, clean: bool = False, columns: Mapping[str, str] | None = None
) -> EvalSet:
    """Wrong proofs by kind of error.

    Args:
        own: PRMBench's own kinds as slices, instead of the paper's.
        clean: PRMBench's uncorrupted solutions as pairs too, in the slice `no error`.
        columns: of a plain file, see `read_table`; `error_type` is the column of the kind.
    """
    first = next(read_rows(path), None)
    if first is None:
        raise DataError(f"{path} has no rows; give a file with rows")
    if first[1].keys() >= COLUMNS:
        return build_set("error_types", _of_prmbench(path, own, clean), notes=() if own else (READING,))
    names = {"slice": "error_type"}
    for meaning, column in (columns or {}).items():
        names["slice" if meaning == "error_type" else meaning] = column
    return build_set("error_types", _of_table(path, names))


def _of_table(path: Path, names: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    for row in table_rows(path, names):
        if isinstance(row, LeftOut):
            yield row
        elif not row.pair.slice.strip():
            yield LeftOut(row=row.pair.pair_id, reason="no kind of error")
        else:
            kind = " ".join(row.pair.slice.lower().replace("_", " ").split())
            known = kind if kind in KINDS else row.pair.slice.strip()
            yield replace(row, pair=replace(row.pair, slice=known))


def _of_prmbench(path: Path, own: bool, clean: bool) -> Iterator[Candidate | LeftOut]:
    from pv_data.sources.opening import open_source

    for row in source_rows(open_source("prmbench", path)):
        if isinstance(row, LeftOut) or row.pair.label is None:
            yield row
            continue
        kind = row.rule.removeprefix(CORRUPTED) if row.rule.startswith(CORRUPTED) else ""
        part = kind if own else OF_PRMBENCH.get(kind, "")
        if row.pair.label:
            part = CLEAN if clean else ""
        if part:
            yield replace(row, pair=replace(row.pair, slice=part))
        else:
            reason = "uncorrupted solution" if row.pair.label else "unknown kind of error"
            yield LeftOut(row=row.pair.pair_id, reason=reason)
