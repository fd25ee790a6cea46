"""Files of the forms that the sources read: tables, student work, LaTeX; and files that are none of them."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources_cases import jsonl, problems, proofs, read, reasons

from pv_data.duplicates import problems_of
from pv_data.hookspecs import MethodEntry, SourceEntry, hookimpl
from pv_data.plugins import SOURCES
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof, Slice
from pv_data.sources.opening import check_options, open_source
from pv_rl import plugins
from pv_rl.errors import ConfigError, DataError, PluginError

STEP = {
    "id": "a-1",
    "generator": "M",
    "problem": "What is 1 + 1?",
    "steps": ["It is 2.", "Done."],
    "label": -1,
}


def test_steps_are_joined_and_a_wrong_one_makes_the_solution_wrong(tmp_path: Path):
    path = jsonl(tmp_path / "a.jsonl", STEP, STEP | {"id": "a-2", "generator": "N", "label": 1})
    first, second = proofs(read("processbench", path))
    assert (first.text, first.known, first.model) == ("It is 2.\n\nDone.", True, "M")
    assert (second.known, second.known_by) == (False, "human: no wrong step")


@pytest.mark.parametrize("label", [2, -2, True, "−1", "-1", -1.0, None, [], 10**30])
def test_a_label_that_is_no_step_is_set_aside(tmp_path: Path, label: object):
    path = jsonl(tmp_path / "a.jsonl", STEP, STEP | {"id": "a-2", "generator": "N", "label": label})
    rows = read("processbench", path)
    assert len(proofs(rows)) == 1
    assert sum(reasons(rows).values()) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "x", "label": -1, "label": 0}', "key twice"),
        (b"\xff\xfe\xfd", "not UTF-8"),
        (b'{"id": "x"', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id": NaN}', "not JSON"),
        (b'{"label": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[1]", "not an object"),
        (b"{}", "missing: id"),
        (json.dumps(STEP | {"problem": "a\x00b"}).encode(), "NUL character: problem"),
        (json.dumps(STEP | {"problem": "a\ud800b"}).encode(), "lone surrogate: problem"),
        (json.dumps(STEP | {"problem": 7}).encode(), "not text: problem"),
        (json.dumps(STEP | {"problem": " \n"}).encode(), "empty: problem"),
        (json.dumps(STEP | {"problem": "x" * 1_000_001}).encode(), "giant: problem"),
        (json.dumps(STEP | {"steps": "x"}).encode(), "not a list: steps"),
        (json.dumps(STEP | {"steps": []}).encode(), "empty: steps"),
        (json.dumps(STEP | {"steps": ["a", ["b"]]}).encode(), "not text: steps"),
        (json.dumps(STEP).encode(), "twice"),
        (json.dumps(STEP | {"label": 0}).encode(), "twice, other label"),
        (b'{"id": "' + b"x" * 8_000_001, "giant row"),
    ],
)
def test_a_bad_line_is_set_aside_with_its_reason_and_the_next_is_read(
    tmp_path: Path, line: bytes, reason: str
):
    good = json.dumps(STEP).encode(), json.dumps(STEP | {"id": "z", "problem": "And 2 + 2?"}).encode()
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + good[0] + b"\n" + line + b"\r\n\n" + good[1])
    rows = read("processbench", tmp_path / "a.jsonl")
    assert reasons(rows) == {reason: 1}
    assert [one.known for one in proofs(rows)] == [True, True]
    assert all(len(one.content) <= 2000 for one in rows if one.kind == "aside")  # pyright: ignore


def test_files_that_are_altogether_wrong_are_refused(tmp_path: Path):
    (tmp_path / "utf16.jsonl").write_text(json.dumps(STEP), encoding="utf-16")
    (tmp_path / "empty.jsonl").write_text("")
    jsonl(tmp_path / "other.jsonl", {"a": 1}, {"b": 2})
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(json.dumps(STEP).encode() * 100)[:60])
    (tmp_path / "no.jsonl.gz").write_bytes(b"no gzip at all")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, said in {
        "utf16.jsonl": "UTF-16",
        "empty.jsonl": "no rows",
        "other.jsonl": "none of its 2 rows",
        "a.txt": "another kind",
        "loop.jsonl": "does not exist",
        "nowhere.jsonl": "does not exist",
        "folder.jsonl": "has no file",
        "cut.jsonl.gz": "to its end",
        "no.jsonl.gz": "to its end",
        "pipe.jsonl": "not a regular file",
        "not there.jsonl": "does not exist",
        "a\0b.jsonl": "does not exist",
    }.items():
        with pytest.raises(DataError, match=said):
            read("processbench", tmp_path / name)


BAD = {
    "b.csv": b'problem,proof\nP,"never closed\n',
    "c.csv": b"",
    "d.csv": b"another,kind\n1,2\n",
    "e.jsonl.gz": gzip.compress(b'{"problem": "P"}' * 100)[:60],
    "f.parquet": b"no parquet",
    "g.jsonl": "x".encode("utf-16"),
}


def test_a_file_of_a_folder_that_cannot_be_read_is_set_aside_and_the_others_are_read(tmp_path: Path):
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a.csv").write_text("problem,proof\nP?,So.\n")
    jsonl(tmp_path / "z.jsonl", {"problem": "Q?", "proof": "Thus."})
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.parquet")
    rows = read("table", tmp_path)
    assert [one.text for one in proofs(rows)] == ["So.", "Thus."]
    aside = {one.row: one.detail for one in rows if isinstance(one, Aside) and one.reason == "file not read"}
    assert set(aside) == {*BAD, "gone.jsonl", "pipe.csv", "pipe.parquet"}
    assert "quotation mark" in aside["b.csv"]
    assert "none of its 1 row " in aside["d.csv"]
    with pytest.raises(DataError, match="remove it from the test set's folder"):
        list(problems_of("table", tmp_path))


def test_a_folder_of_which_no_file_can_be_read_is_refused(tmp_path: Path):
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"b\.csv, line 2: .* quotation mark .* other 5 files"):
        read("table", tmp_path)
    for name in BAD:
        with pytest.raises(DataError):
            read("table", tmp_path / name)


def test_a_folder_a_link_and_a_packed_file_are_read(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps(STEP | {"generator": "B"}).encode()))
    real = jsonl(tmp_path / "real", STEP | {"generator": "A"})
    (folder / "a.jsonl").symlink_to(real)
    (folder / ".hidden.jsonl").write_text("not read")
    assert [one.model for one in proofs(read("processbench", folder))] == ["A", "B"]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("processbench", {"colour": 1}),
        ("processbench", {"path": "b.jsonl"}),
        ("dsmathv2", {"positive": 7}),
        ("dsmathv2", {"positive": "all"}),
        ("dsmathv2", {"negative": "0"}),
        ("gsm8k_solutions", {"annotations": True}),
        ("prmbench", {"not_wrong": "circular"}),
        ("prmbench", {"not_wrong": 5}),
        ("prmbench", {"not_wrong": [5]}),
        ("olympiadbench", {"language": 5}),
        ("opc", {"references": "no"}),
        ("table", {"columns": {"proof": 3}}),
        ("table", {"columns": ["proof"]}),
        ("table", {"method": "a/b"}),
        ("table", {"method": "a[b]"}),
        ("table", {"known_by": ""}),
        ("table", {"method": None}),
        ("table", {"licence": 4.0}),
        ("table", {"language": False}),
        ("table", {"known_by": 1}),
        ("student", {"full": 0}),
        ("student", {"full": "7"}),
        ("student", {"full": True}),
        ("student", {"short": 2.5}),
        ("student", {"licence": 5}),
        ("latex", {"problems": "problem"}),
        ("latex", {"problems": 5}),
        ("latex", {"solutions": [True]}),
        ("latex", {"boxes": {"a": 1}}),
        ("latex", {"licence": 5}),
        ("latex", {"language": False}),
    ],
)
def test_an_option_that_does_not_exist_or_fit_is_refused(
    tmp_path: Path, source: str, options: dict[str, Any]
):
    name = next(iter(options))
    with pytest.raises(ConfigError, match=name):
        next(open_source(source, jsonl(tmp_path / "a.jsonl", STEP), options))


def test_options_of_each_type_are_taken(tmp_path: Path):
    path = jsonl(tmp_path / "a.jsonl", STEP)
    for source, options in {
        "dsmathv2": {"positive": 0.7, "negative": 0},
        "prmbench": {"not_wrong": []},
        "table": {"columns": {"proof": "steps"}, "licence": "CC0"},
        "student": {"full": 7, "columns": None},
        "latex": {"problems": ["exo"], "boxes": ()},
    }.items():
        open_source(source, path, options)


def test_an_error_about_an_option_says_what_is_allowed_and_what_to_do():
    with pytest.raises(ConfigError) as error:
        open_source("table", Path("a.csv"), {"language": False})
    assert str(error.value) == (
        "the source table: language=False: expected text (given: False); put it in quotes. Its options are "
        "columns, cut, labels, rows, thinking, references, source, method, licence, language, known_by"
    )
    with pytest.raises(ConfigError, match=r"no option 'licens'\. Did you mean licence\? It has columns, "):
        open_source("table", Path("a.csv"), {"licens": "MIT"})


def test_options_of_a_plugins_source_are_checked_by_its_signature():
    def read(path: Path, *, many: int, names: Sequence[str] = (), any_=None) -> Iterator[Any]:
        raise AssertionError

    def free(path: Path, **options: Any) -> Iterator[Any]:
        raise AssertionError

    check_options("mine", read, {"many": 2, "names": ["a"], "any_": object()})
    check_options("mine", free, {"colour": "red"})

    def typed(
        path: Path, *, names: tuple[str, ...], other: Path, later: os.no_such_type | None = None
    ) -> Iterator[Any]:
        raise AssertionError

    def yaml_has_none(path: Path, *, names: tuple[str, ...], other: Path) -> Iterator[Any]:
        raise AssertionError

    given = {"names": ["a", "b"], "other": "dir/file"}
    assert check_options("mine", yaml_has_none, given) == {"names": ("a", "b"), "other": Path("dir/file")}
    assert check_options("mine", typed, given) == given  # a type that is only there for type checkers
    with pytest.raises(ConfigError, match="no option 'path'"):
        check_options("mine", free, {"path": "a"})
    for options, said in (
        ({}, "needs the option many"),
        ({"many": True}, "many=True"),
        ({"many": 1, "names": "ab"}, "names='ab'"),
        ({"many": 1, "path": 3}, "no option 'path'"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_options("mine", read, options)


@pytest.mark.parametrize(
    ("source", "method", "said"),
    [
        ("a/b", "proof", "'a/b' as the name of a source"),
        ("a", "by/hand", "'by/hand'"),
        ("", "proof", "''"),
        ("a", "[x]", "x"),
    ],
)
def test_a_name_that_no_slice_can_have_is_refused(monkeypatch, source: str, method: str, said: str):
    def read(path: Path) -> Iterator[Any]:
        yield (problem := Problem(source=source, native_id="1", text="P?"))
        yield Proof(problem_id=problem.id, source=source, method=method, model="org/model", text="So.")

    monkeypatch.setattr("pv_rl.plugins.Registry.named", lambda *_: SourceEntry(name="mine", read=read))
    with pytest.raises(PluginError, match=f"the source mine gives .*{re.escape(said)}.* no /"):
        list(open_source("mine", Path("a")))


def test_a_models_name_may_have_a_slash_and_an_entrys_may_not(monkeypatch):
    def read(path: Path) -> Iterator[Any]:
        yield (problem := Problem(source="S", native_id="1", text="P?"))
        yield Proof(problem_id=problem.id, source="S", method="proof", model="org/model", text="So.")

    monkeypatch.setattr("pv_rl.plugins.Registry.named", lambda *_: SourceEntry(name="mine", read=read))
    (proof,) = proofs(open_source("mine", Path("a")))
    assert Slice.read(proof.slice) == Slice(source="S", method="proof", model="org/model")
    for kind, more in ((SourceEntry, {"read": read}), (MethodEntry, {"build": read})):
        with pytest.raises(PluginError, match="without /"):
            kind(name="a/b", **more)


def test_a_source_without_a_signature_is_left_out_with_the_reason(monkeypatch):
    module = types.ModuleType("theirs")
    added = hookimpl(specname="pv_data_sources")(lambda: [SourceEntry(name="mine", read=dict)])
    module.pv_data_sources = added  # pyright: ignore
    monkeypatch.setitem(sys.modules, "theirs", module)
    found = [EntryPoint(name="theirs", value="theirs", group="pv_data.plugins")]
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "entry_points", lambda group: found)
        plugins.forget_plugins(reload=True)
        assert "no signature found for builtin" in SOURCES.broken()["? (theirs = theirs)"]
        assert "table" in SOURCES.entries()
        assert "mine" not in SOURCES.entries()
    plugins.forget_plugins(reload=True)


GRADED = {"set": "S", "problem_idx": 1, "problem": "Show it.", "proof": "Shown.", "max_rating": 7}


@pytest.mark.parametrize(
    ("points", "options", "known"),
    [
        (7, {}, True),
        (6, {}, False),
        (6.99, {}, False),
        (5, {"positive": 5 / 7}, True),
        (4, {"positive": 5 / 7}, False),
        (4, {"positive": 5 / 7, "negative": 2 / 7}, None),
        (2, {"positive": 5 / 7, "negative": 2 / 7}, False),
    ],
)
def test_points_become_a_label_by_the_rule(
    tmp_path: Path, points: float, options: dict[str, Any], known: bool | None
):
    path = jsonl(tmp_path / "a.jsonl", GRADED | {"human_rating": points})
    (row,) = proofs(read("dsmathv2", path, **options))
    assert row.known is known
    assert row.known_by == ("" if known is None else "human: 5 or more of 7" if options else "human: 7 of 7")


@pytest.mark.parametrize("points", [8, -1, "all", True, None])
def test_points_that_cannot_be_are_set_aside(tmp_path: Path, points: object):
    rows = read("dsmathv2", jsonl(tmp_path / "a.jsonl", GRADED | {"human_rating": points}))
    assert len(problems(rows)) == 1
    assert proofs(rows) == []


TABLE = [
    {"q": "Is 2 even?", "a": "Yes, 2 = 2 * 1.", "ok": "correct"},
    {"q": "Is 3 even?", "a": "Yes.", "ok": "0"},
    {"q": "Is 4 even?", "a": "Perhaps.", "ok": ""},
    {"q": "Is 5 even?", "a": "No.", "ok": "maybe"},
    {"q": "Is 6 even?", "a": "", "ok": "1"},
]
COLUMNS = {"problem": "q", "proof": "a", "label": "ok"}


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_table_gives_the_same_in_each_form(tmp_path: Path, suffix: str):
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        jsonl(path, *TABLE)
    elif suffix == "csv":
        lines = ["q,a,ok", *(f'"{row["q"]}","{row["a"]}",{row["ok"]}' for row in TABLE)]
        path.write_text("\r\n".join(lines), encoding="utf-8-sig")
    else:
        pq.write_table(pa.Table.from_pylist(TABLE), path)
    rows = read("table", path, columns=COLUMNS, known_by="human: yes or no")
    assert [(one.known, one.known_by) for one in proofs(rows)] == [
        (True, "human: yes or no"),
        (False, "human: yes or no"),
        (None, ""),
    ]
    assert reasons(rows) == {"no label: label": 1, "empty: proof": 1}
    assert len(problems(rows)) == 5


def test_a_table_without_proofs_gives_problems_and_one_of_references_right_proofs(tmp_path: Path):
    path = jsonl(tmp_path / "a.jsonl", {"problem": "P?", "answer": 7, "split": "test"})
    (problem,) = read("table", path)
    assert (problem.answer, problem.split) == ("7", "test")  # pyright: ignore
    path = jsonl(tmp_path / "b.jsonl", {"problem": "P?", "proof": "So."})
    (proof,) = proofs(read("table", path, method=GROUND_TRUTH))
    assert (proof.known, proof.known_by) == (True, "reference solution")


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path):
    with pytest.raises(DataError, match="missing: question; the row has q, a, ok"):
        read("table", jsonl(tmp_path / "a.jsonl", *TABLE), columns={"problem": "question"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('problem,proof\nP,"never closed\nQ,b\n', "quotation mark"),
        ('problem,proof\nP,"a"b\n', "quotation mark"),
        ("problem,problem\na,b\n", "each once"),
        ("", "no first line"),
        ("problem,proof\nP," + "x" * 1_000_001, "more than"),
    ],
)
def test_a_csv_whose_cells_cannot_be_told_apart_is_refused_before_its_first_row(
    tmp_path: Path, text: str, said: str
):
    (tmp_path / "a.csv").write_text(text)

    with pytest.raises(DataError, match=said):
        next(SOURCES.named("table").read(tmp_path / "a.csv"))


def test_rows_of_a_csv_with_wrong_bytes_or_too_many_cells_are_set_aside(tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(b"problem,proof\nP,a\n\xe9t\xe9,b\nQ,c,d\nR\nS,e\n")
    rows = read("table", tmp_path / "a.csv")
    assert [one.text for one in proofs(rows)] == ["a", "e"]
    assert reasons(rows) == {"not UTF-8: problem": 1, "too few or too many cells": 2}


def test_parquet_of_another_schema_or_damaged_is_refused(tmp_path: Path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"problem": [["a"], ["b"]]}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    for name, said in {"a": "missing: problem", "b": "not text: problem", "c": "as Parquet"}.items():
        with pytest.raises(DataError, match=said):
            read("table", tmp_path / f"{name}.parquet")


def student(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["problem,answer,score_1,score_2", *rows]))
    return path


def test_student_work_is_right_if_and_only_if_both_marks_are_full(tmp_path: Path):
    path = student(
        tmp_path / "a.csv",
        "P,A proof of some twenty letters,7,7.0",
        "P,Another proof of twenty letters,7,6",
        "P,A third proof of twenty letters,0,0",
        "P,short,7,7",
        "P,,7,7",
        "P,A proof with a mark too high,8,7",
        'P,A proof with a decimal comma,"6,5",7',
        "P,A proof without a second mark,7,",
        "P,A proof of some twenty letters,7,7",
    )
    rows = read("student", path, full=7)
    assert [one.known for one in proofs(rows)] == [True, False, False]
    assert {one.slice for one in proofs(rows)} == {"Student/ground_truth/-"}
    assert reasons(rows) == {
        "short answer": 1,
        "empty: answer": 1,
        "score": 1,
        "no number: score_1": 1,
        "no number: score_2": 1,
        "twice": 1,
    }
    assert len(problems(rows)) == 1


def test_full_marks_can_stand_in_a_column(tmp_path: Path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"problem": "P", "answer": "x" * 30, "score_1": 10, "score_2": 10, "full": 10},
        {"problem": "P", "answer": "y" * 30, "score_1": 10, "score_2": 10, "full": 20},
        {"problem": "P", "answer": "z" * 30, "score_1": 0, "score_2": 0, "full": 0},
    )
    rows = read("student", path)
    assert [one.known for one in proofs(rows)] == [True, False]
    assert reasons(rows) == {"score": 1}


def test_student_work_without_full_marks_is_refused_with_what_to_do(tmp_path: Path):
    path = student(tmp_path / "a.csv", "P,A proof of some twenty letters,7,7")
    with pytest.raises(DataError, match="give the option full, the number of full marks, or a column"):
        read("student", path)
    with pytest.raises(
        DataError,
        match="missing: score_1, score_2; the row has problem, answer, mark; name its column",
    ):
        read("student", jsonl(tmp_path / "b.jsonl", {"problem": "P", "answer": "x" * 30, "mark": 7}), full=7)
    path = jsonl(
        tmp_path / "c.jsonl",
        {"problem": "P", "answer": "x" * 30, "score_1": 7, "score_2": 7, "full": 7},
        {"problem": "Q", "answer": "y" * 30, "score_1": 7, "score_2": None, "full": 7},
        {"problem": "R", "answer": "z" * 30, "score_1": 7, "score_2": 7},
    )
    assert reasons(read("student", path)) == {"empty: score_2": 1, "missing: full": 1}


def test_a_value_that_is_null_is_called_empty(tmp_path: Path):
    rows = read("table", jsonl(tmp_path / "a.jsonl", {"problem": "P?"}, {"problem": None, "proof": "So."}))
    (aside,) = [one for one in rows if isinstance(one, Aside)]
    assert (aside.reason, aside.detail) == ("empty: problem", "the row has no value for problem")


def test_floats_of_a_parquet_file_are_labels_and_ids(tmp_path: Path):
    table = {
        "problem": ["P?", "Q?", "R?", "S?", "T?"],
        "proof": ["p", "q", "r", "s", "t"],
        "label": [1.0, 0.0, float("nan"), None, 0.5],
        "id": [7.0, float("nan"), 9.5, None, 2.0**60],
        "answer": [3.0, 2.5, float("nan"), None, None],
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    rows = read("table", tmp_path / "a.parquet")
    assert [(one.native_id, one.answer) for one in problems(rows)] == [
        ("7", "3"),
        ("a.parquet:2", "2.5"),
        ("a.parquet:4", ""),
    ]
    assert [one.known for one in proofs(rows)] == [True, False, None]
    assert reasons(rows) == {"not text: id": 2}
    pq.write_table(pa.table({"problem": ["P?"], "proof": ["p"], "label": [0.5]}), tmp_path / "b.parquet")
    assert reasons(read("table", tmp_path / "b.parquet")) == {"no label: label": 1}


@pytest.mark.parametrize(("label", "known"), [("1.0", True), ("0.0", False), ("NaN", None), ("", None)])
def test_floats_of_a_csv_file_are_labels(tmp_path: Path, label: str, known: bool | None):
    (tmp_path / "a.csv").write_text(f"problem,proof,label\nP?,So.,{label}\n")
    (proof,) = proofs(read("table", tmp_path / "a.csv"))
    assert proof.known is known


@pytest.mark.parametrize("source", ["table", "student"])
def test_a_blank_id_is_none(tmp_path: Path, source: str):
    lines = [f"{name}?,{name * 30},7,7,7,{id_}" for name, id_ in (("P", ""), ("Q", "  "), ("R", "q-1"))]
    (tmp_path / "a.csv").write_text("\n".join(["problem,answer,score_1,score_2,full,id", *lines]))
    names = [one.native_id for one in problems(read(source, tmp_path / "a.csv"))]
    assert names == ["a.csv:2", "a.csv:3", "q-1"]
