"""Fuzz targets of files of rows: the row readers, and what scoring, weights and evaluation read from them."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from fuzz.checks import Refused, file_of, folder_of, json_of, outcome, parts_of, text_of
from pv_eval.grade_file import read_grades
from pv_eval.graded import Scale
from pv_eval.run_files import RunInfo, read_info, read_run, write_run
from pv_eval.sets.base import EvalSet
from pv_eval.sets.tables import read_graded, read_table
from pv_eval.verifiers.recorded import read_traces
from pv_eval.votes import Pair, Vote, read_vote
from pv_judge.rowfiles import BadRow, open_rows
from pv_judge.scoring.samples import open_source
from pv_runs.weights.reading import read_rollouts
from pv_runs.weights.rollouts import MAX_LENGTH, read_lengths

PAIRS = [
    Pair(pair_id="p", question_id="q", label=True, question="Is 1 < 2?", proof="Yes.", grade=1.0),
    Pair(pair_id="r", question_id="q", label=False, question="Is 1 < 2?", proof="No.", grade=0.0),
]


def _read_all(path: Path) -> Any:
    """Everything that a file gives, by each way to read it."""
    rows = outcome(lambda: list(open_rows(path).scan()))
    kinds = outcome(lambda: open_rows(path).kinds)
    strict = outcome(lambda: [row.values for row in open_rows(path).rows()])
    if not isinstance(strict, Refused) and not isinstance(rows, Refused):
        assert len(strict) == len(rows)
        assert bool(strict) is not isinstance(kinds, Refused)
    outcome(lambda: list(open_rows(path).rows(["a", "b"], {"b": "sum"})))
    outcome(lambda: list(open_rows(path).rows(["a", "b"], {"b": "count"})))
    return rows


def json_lines(data: bytes) -> None:
    """A row that was read is read again as the same; each line that is not blank is a row or a bad row."""
    with file_of(data, "a.jsonl") as path:
        rows = _read_all(path)
        assert not isinstance(rows, Refused) or data[:2] in (b"\xff\xfe", b"\xfe\xff")
        if isinstance(rows, Refused):
            return
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        assert len(rows) == sum(bool(line.strip()) for line in lines)
        good = [row.values for row in rows if not isinstance(row, BadRow)]
        path.write_text("".join(json.dumps(one) + "\n" for one in good))
        assert repr([row.values for row in open_rows(path).rows()]) == repr(good)


def json_file(data: bytes) -> None:
    """A .json file, and the rows in a place within it."""
    with file_of(data, "a.json") as path:
        _read_all(path)
        outcome(lambda: list(open_rows(path, within="a.b").scan()))


def csv_file(data: bytes) -> None:
    """Every row has the columns of the first line, as text."""
    with file_of(data, "a.csv") as path:
        rows = _read_all(path)
        if not isinstance(rows, Refused):
            for row in rows:
                if not isinstance(row, BadRow):
                    assert all(isinstance(one, str) for pair in row.values.items() for one in pair)


def parquet_file(data: bytes) -> None:
    """A damaged file is refused, or gives rows."""
    with file_of(data, "a.parquet") as path:
        _read_all(path)
        outcome(read_rollouts, path)
        outcome(_samples, path)


def packed(data: bytes) -> None:
    """A file that ends in .gz."""
    with file_of(data, "a.jsonl.gz") as path:
        outcome(lambda: list(open_rows(path).scan()))


def _samples(path: Path) -> list[Any]:
    return [
        (number, sample.response, sample.label)
        for number, sample in open_source(path, label_kind="verdict", step=None).samples()
    ]


def rollouts(data: bytes) -> None:
    """Rollouts of verl, or of anybody: what `pv-rl weights` and `pv-rl score` read."""
    with file_of(data, "a.jsonl") as path:
        found = outcome(read_rollouts, path)
        if not isinstance(found, Refused):
            assert len(found.lengths) == len(found.groups)
            assert all(0 <= one <= MAX_LENGTH for one in found.lengths)
        outcome(_samples, path)
    found = outcome(read_lengths, [text_of(data)])
    if not isinstance(found, Refused):
        rows = groupby(zip(found.groups, found.lengths, strict=True), key=itemgetter(0))
        typed = ";".join(",".join(str(length) for _, length in row) for _, row in rows)
        assert read_lengths([typed]).lengths == found.lengths


def votes(data: bytes) -> None:
    """A vote of a trace can be written and is read again."""
    text = text_of(data)
    vote = outcome(read_vote, pair_id="p", question_id="q", sample=0, trace=text)
    assert isinstance(vote, Vote)
    with folder_of() as folder:
        write_run(folder, PAIRS, [vote], RunInfo(verifier="v"))
        pairs, (again,), _ = read_run(folder)
        assert pairs == PAIRS
        assert again.trace == text.encode("utf-8", "replace").decode()
        assert again.verdict is vote.verdict


def evaluation_run(data: bytes) -> None:
    """The run.json and the tables of an evaluation."""
    about, pairs = parts_of(data, 2)
    with folder_of() as folder:
        write_run(folder, PAIRS, [], RunInfo(verifier="v"))
        if pairs:
            (folder / "pairs.parquet").write_bytes(pairs)
        (folder / "run.json").write_bytes(about)
        info = outcome(read_info, folder)
        outcome(read_run, folder)
        if isinstance(info, RunInfo):
            written = outcome(write_run, folder, PAIRS, [], info)
            if not isinstance(written, Refused):  # halves of surrogate pairs become `?`, once
                again = read_info(folder)
                write_run(folder, PAIRS, [], again)
                assert repr(read_info(folder)) == repr(again)
                assert (again.grades, again.seed) == (info.grades, info.seed)


def votes_file(data: bytes) -> None:
    """A damaged votes.parquet."""
    with folder_of() as folder:
        write_run(folder, PAIRS, [], RunInfo(verifier="v"))
        (folder / "votes.parquet").write_bytes(data)
        outcome(read_run, folder)


def grades(data: bytes) -> None:
    """A file of grades, in each form; shares are from 0 to 1 and votes belong to pairs."""
    for name in ("a.jsonl", "a.json", "a.csv"):
        with file_of(data, name) as path:
            for options in ({}, {"points": 7.0}, {"grades": [0.0, 0.5, 1.0]}):
                found = outcome(read_grades, path, **options)
                if isinstance(found, Refused):
                    continue
                assert isinstance(found.scale, Scale)
                pairs = {pair.pair_id for pair in found.pairs}
                assert all(vote.pair_id in pairs for vote in found.votes)


def recorded_traces(data: bytes) -> None:
    """Traces that somebody sampled, matched to a set."""
    known = EvalSet(name="s", pairs=tuple(PAIRS), rule_of={}, left_out={})
    for name in ("a.jsonl", "a.csv"):
        with file_of(data, name) as path:
            found = outcome(read_traces, path, known)
            if not isinstance(found, Refused):
                assert {pair for pair, _ in found.traces} <= {"p", "r"}


def evaluation_set(data: bytes) -> None:
    """A table and a graded file as sets: every pair is labelled or graded within bounds."""
    for name in ("a.jsonl", "a.csv"):
        with file_of(data, name) as path:
            for read in (read_table, read_graded):
                found = outcome(read, path)
                if not isinstance(found, Refused):
                    ids = [pair.pair_id for pair in found.pairs]
                    assert len(set(ids)) == len(ids)


def vote_fields(data: bytes) -> None:
    """Fields of a pair and of a vote, as a file holds them."""
    values = json_of(data)
    if isinstance(values, dict):
        outcome(_made, Pair, {"pair_id": "p", "question_id": "q", "label": None}, values)
        outcome(_made, Vote, {"pair_id": "p", "question_id": "q", "sample": 0, "verdict": None}, values)


def _made(kind: Any, needed: dict[str, Any], values: dict[str, Any]) -> Any:
    names = kind.__dataclass_fields__
    return kind(**{**needed, **{name: value for name, value in values.items() if name in names}})
