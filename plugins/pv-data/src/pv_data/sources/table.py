"""Source `table`: JSON lines, JSON, CSV or Parquet whose columns the config names. The source of every further form.

    kind: table
    options:
      columns: {problem: question, proof: "responses[].text", label: "responses[].grade"}
      labels: {correct: true, incorrect: false}

A preset (`presets.py`) is this source with its options filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pv_data.hookspecs import Read
from pv_data.records import GROUND_TRUTH
from pv_data.sources.reading.assemble import assemble
from pv_data.sources.reading.form import MEANINGS, Form
from pv_data.sources.reading.rows import TABLES

__all__ = ["MEANINGS", "read"]


def read(
    path: Path,
    *,
    columns: Mapping[str, str | list[str]] | None = None,
    cut: Mapping[str, str] | None = None,
    labels: Mapping[str, bool | None] | None = None,
    rows: str = "",
    thinking: Literal["keep", "remove"] = "keep",
    references: bool = True,
    source: str = "table",
    method: str = "proof",
    licence: str = "",
    language: str = "",
    known_by: str = "table",
) -> Read:
    """A problem a row, and its proofs where the row has some.

    Args:
        columns: which column of the file is what (see `MEANINGS`), by name or by a path: `{problem: question, proof:
            "attempts[].solution"}`. One that is not named here is looked for under its own name; `steps`, texts that
            make one proof, and `reference` are not. Several columns of labels have to agree, if both give one.
        cut: from a column to the template that cuts it, `{prompt: "### Problem:{problem}### Proof:{proof}"}`.
        labels: what each value of the label column means, `{correct: true, incorrect: false}`; see `LabelMap`.
        rows: where a .json file has its rows, if that is unclear: `data.train`; `.` if the file is one row.
        thinking: `remove` takes the thoughts before `</think>` out of proofs.
        references: whether the reference solutions are given too.
        source: the first part of the slices.
        method: of the proofs; `ground_truth` for reference proofs, which are right where no label says otherwise.
        licence: of rows that do not say theirs.
        language: of rows that do not say theirs.
        known_by: what the labels rest on, for example `human: 7 of 7`.
    """
    form = Form(
        columns=columns or {},
        cut=cut or {},
        labels=labels,
        thinking=thinking,
        references=references,
        source=source,
        method=method,
        licence=licence,
        language=language,
        known_by=known_by,
    )
    repeats = (GROUND_TRUTH,) if "reference" in form.columns and method != GROUND_TRUTH else ()
    yield from assemble(path, TABLES, form.rows, repeats=repeats, within=rows, good=form.fits)
