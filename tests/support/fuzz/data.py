"""Fuzz targets of pv-data: sources, LaTeX, its tables, and texts that a model writes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from fuzz.checks import Refused, file_of, folder_of, json_of, outcome, parts_of, text_of
from pv_data.audit.mathml import to_html
from pv_data.duplicates.blind import features
from pv_data.duplicates.shingles import normalised
from pv_data.methods.base import Unfit
from pv_data.methods.masking import masked
from pv_data.methods.reading import bare, body_of
from pv_data.methods.steps import split_steps
from pv_data.methods.truncation import truncated
from pv_data.plugins import SOURCES
from pv_data.records import Aside, Problem, Proof
from pv_data.run.label_studio_export import _tasks
from pv_data.sources.opening import open_source
from pv_data.sources.reading.label_map import LabelMap
from pv_data.sources.reading.paths import is_path, value_at
from pv_data.sources.reading.unusable import Unusable
from pv_data.table import read_rows, write_part

PUBLISHED = ("opc", "prmbench", "processbench", "gsm8k_solutions", "dsmathv2", "olympiadbench", "student")
ROWS = [Proof(problem_id="p", source="s", method="m", text=f"So {n} > 0.", known=n > 1) for n in range(3)]
PROOF = "\n\n".join(f"Therefore step {n} holds, since x = {n} is what we have shown." for n in range(6))


def _check_rows(rows: Any) -> None:
    if not isinstance(rows, Refused):
        with folder_of() as folder:
            check_stored(rows, folder)


def check_stored(rows: list[Problem | Proof | Aside], folder: Path) -> None:
    """Everything that comes out of a source can be written and read again, with the same ids."""
    for kind in (Problem, Proof, Aside):
        some = [row for row in rows if isinstance(row, kind)]
        write_part(folder / f"{kind.kind}.parquet", kind, some)
        assert [row.id for row in read_rows(folder / f"{kind.kind}.parquet", kind)] == [
            row.id for row in some
        ]
    for row in rows:
        if isinstance(row, Aside):
            assert row.reason
            assert len(row.reason) < 200
            assert len(row.content) <= 2000
        else:
            assert row.text.strip()
            assert "\x00" not in row.text


def _source(kind: str, path: Path, **options: Any) -> Any:
    return outcome(SOURCES.named(kind).read, path, **options)


def latex(data: bytes) -> None:
    """A LaTeX file; comments that are added do not change what is read."""
    with file_of(data, "a.tex") as path:
        rows = _source("latex", path)
        _check_rows(rows)
        path.write_bytes(b"% a comment\n" + data)
        commented = _source("latex", path)
        if not isinstance(rows, Refused) and not data.startswith(b"\xef\xbb\xbf"):
            assert [one.id for one in commented if not isinstance(one, Aside)] == [
                one.id for one in rows if not isinstance(one, Aside)
            ]


def latex_pair(data: bytes) -> None:
    """A file of problems and one of its solutions."""
    problems, solutions = parts_of(data, 2)
    with folder_of(**{"1999_dot_tex": problems, "1999s_dot_tex": solutions}) as folder:
        _check_rows(_source("latex", folder))


def table(data: bytes) -> None:
    """Rows of problem, proof and label in each form of file; a row before them stays what it is."""
    for suffix in ("jsonl", "json", "csv"):
        with file_of(data, f"a.{suffix}") as path:
            _check_rows(_source("table", path))
    good = b'{"problem": "Is 1 < 2?", "proof": "It is.", "label": true}\n'
    with file_of(good + data, "a.jsonl") as path:
        rows = _source("table", path)
        if not isinstance(rows, Refused):
            assert any(isinstance(row, Proof) and row.text == "It is." for row in rows)


def table_options(data: bytes) -> None:
    """Options of the source `table`, as a config holds them, on two rows."""
    options = json_of(data)
    if isinstance(options, dict):
        rows = (
            b'{"problem": "P?", "a": [{"text": "So.", "ok": 1}, null], "b": "P: x Q: y", "label": true}\n{}'
        )
        with file_of(rows, "a.jsonl") as path:
            outcome(lambda: list(open_source("table", path, options)))


def columns(data: bytes) -> None:
    """A path into a row, and a map of labels."""
    path, row, labels = parts_of(data, 3)
    values, given = json_of(row), json_of(labels)
    outcome(is_path, text_of(path))
    if isinstance(values, dict):
        outcome(value_at, values, text_of(path), errors=(Unusable,))
    if isinstance(outcome(_meanings, given, "true"), Refused):
        return
    for value in (values, text_of(row), *(values.values() if isinstance(values, dict) else ())):
        meaning = outcome(_meanings, given, value, errors=(Unusable,))
        assert meaning in (True, False, None) or isinstance(meaning, Refused)


def _meanings(given: Any, value: Any) -> bool | None:
    labels = LabelMap(given)
    return None if value == "true" else labels.meaning(value, "label")


def published_sets(data: bytes) -> None:
    """The published sets, each with its own columns."""
    for kind in PUBLISHED:
        options = {"full": 7.0} if kind == "student" else {}
        with file_of(data, "a.jsonl") as path:
            _check_rows(_source(kind, path, **options))


def stored_table(data: bytes) -> None:
    """A part of a table that was changed on the disk."""
    with folder_of() as folder:
        path = folder / "a.parquet"
        write_part(path, Proof, ROWS)
        (folder / "b.parquet").write_bytes(data)
        outcome(lambda: list(read_rows(folder / "b.parquet", Proof)))
        for beside in folder.glob("a.parquet?*"):
            beside.write_bytes(data)
        outcome(lambda: list(read_rows(path, Proof)))


def label_studio(data: bytes) -> None:
    """An export of Label Studio."""
    with file_of(data, "a.json") as path:
        outcome(_tasks, path)


def proofs(data: bytes) -> None:
    """Texts of models and of proofs: the steps joined are the proof; no text becomes markup."""
    text = text_of(data).encode("utf-8", "replace").decode()
    steps = outcome(split_steps, text)
    assert "".join(steps) == text
    outcome(body_of, text, errors=(Unfit,))
    assert bare(text.upper()) == bare(text.upper() + " \n")
    outcome(masked(PROOF, share=0.3, seed=1).read, text, errors=(Unfit,))
    outcome(lambda: truncated(PROOF + text, "", random.Random(1)), errors=(Unfit,))
    assert normalised(text + " ") == normalised(text)
    outcome(features, text)
    assert "<script" not in to_html(text).lower()
