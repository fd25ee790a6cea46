"""The ledger: what is acknowledged is there once, whoever is killed when."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT

from pv_judge.ledger import Ledger, LedgerRow, LedgerUnavailable, read_ledger
from pv_judge.ledger import journal as journals
from pv_judge.ledger import ledger as module
from pv_judge.ledger.row import Decision, schema
from pv_rl.errors import DataError, SetupError

PRELUDE = """
import sys
from pv_judge.ledger import Ledger, LedgerRow, LedgerUnavailable
def row(uid, trace="t"):
    return LedgerRow(uid=uid, trace=trace, decision="fluent", decided_by="judge", score=1.0)
folder, name = sys.argv[1:3]
"""
FULL = {
    "time": datetime(2026, 11, 28, 12, 0, 0, 250, tzinfo=UTC),
    "step": 7,
    "uid": "p1",
    "session": 3,
    "data_source": "lab",
    "trace": "so ∀ε > 0 ...\n### True",
    "judge_text": '{"fluent": false}',
    "judge_model": "deepseek-chat",
    "template": "fluency@0123456789abcdef",
    "decision": "vetoed",
    "decided_by": "judge",
    "failure": None,
    "failure_text": None,
    "judge_fluent": False,
    "confidence": 0.9,
    "verdict": True,
    "label": False,
    "inner_score": 0.5,
    "score": 0.0,
    "valid": True,
    "latency_s": 1.5,
    "requests": 2,
    "prompt_tokens": 900,
    "completion_tokens": 40,
    "usd": 0.0003,
    "cached": False,
}


@dataclass
class Anomaly:
    rule: str
    start: int
    end: int
    note: str = "not for the ledger"


def row(uid="p", trace="t", **others):
    return LedgerRow(
        **{"uid": uid, "trace": trace, "decision": "fluent", "decided_by": "judge", "score": 1.0, **others}
    )


def start(code, folder, name="x"):
    command = [sys.executable, "-c", PRELUDE + code, str(folder), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def uids(folder):
    return read_ledger(folder).column("uid").to_pylist()


def files(folder, pattern):
    return sorted(path.name for path in folder.glob(pattern))


def journal(folder):
    return next(folder.glob("journal-*"))


def test_every_field_comes_back(tmp_path):
    hit = {"rule": "line_loop", "start": 4, "end": 40}
    with Ledger(tmp_path) as ledger:
        row_id = ledger.append(LedgerRow(**FULL, rules=[Anomaly(**hit)]))
    assert read_ledger(tmp_path).to_pylist() == [{"row_id": row_id, **FULL, "rules": [hit]}]


def test_a_row_needs_only_what_is_always_known(tmp_path):
    Ledger(tmp_path).append(row())
    (found,) = read_ledger(tmp_path).to_pylist()
    empty = {name for name, value in found.items() if value is None}
    assert empty == {
        "step",
        "session",
        "judge_text",
        "judge_model",
        "template",
        "failure",
        "failure_text",
        "judge_fluent",
        "confidence",
        "verdict",
        "label",
        "inner_score",
    }
    assert timedelta(0) <= datetime.now(UTC) - found["time"] < timedelta(minutes=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": "3"},
        {"step": 2**63},
        {"uid": None},
        {"decision": "maybe"},
        {"verdict": 1},
        {"score": None},
        {"time": datetime(2026, 1, 1)},
        {"time": datetime.fromisoformat("0001-01-01T00:00:00+14:00")},
        {"score": 10**400},
        {"confidence": 10**400},
        {"rules": [{"rule": "r", "start": 0, "end": 1}]},
        {"rules": "r"},
    ],
)
def test_a_value_of_another_type_is_refused_before_it_is_written(wrong):
    with pytest.raises(DataError, match=r"of a ledger row is .*\. Expected "):
        row(**wrong)


def test_half_a_surrogate_does_not_lose_the_row(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(row(trace="a\ud800b"))
    assert read_ledger(tmp_path).column("trace").to_pylist() == ["a\ufffdb"]


def test_rows_are_read_before_and_after_they_are_parquet(tmp_path):
    ledger = Ledger(tmp_path, rows=3)
    for number in range(7):
        ledger.append(row(f"{number}"))
    assert (len(files(tmp_path, "part-*")), len(files(tmp_path, "journal-*"))) == (2, 1)
    assert sorted(uids(tmp_path)) == list("0123456")
    ledger.close()
    assert (len(files(tmp_path, "part-*")), len(files(tmp_path, "*"))) == (3, 3)
    assert sorted(uids(tmp_path)) == list("0123456")


def test_a_journal_also_ends_by_its_size(tmp_path):
    ledger = Ledger(tmp_path, megabytes=0.01)
    for _ in range(5):
        ledger.append(row(trace="x" * 5000))
    assert len(files(tmp_path, "part-*")) == 2


def test_a_writer_without_rows_leaves_nothing(tmp_path):
    Ledger(tmp_path / "runs" / "ledger").close()
    assert files(tmp_path / "runs" / "ledger", "*") == []


def test_a_closed_ledger_takes_no_rows(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        ledger.append(row())


def test_a_part_says_its_version(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(row())
    part = next(tmp_path.glob("part-*"))
    assert pq.read_schema(part).metadata[b"pv_rl.ledger"] == b"2"
    table = pq.read_table(part)
    pq.write_table(table.replace_schema_metadata({"pv_rl.ledger": "3"}), part)
    with pytest.raises(DataError, match="Install the newer pv-rl"):
        read_ledger(tmp_path)


def test_a_ledger_of_version_1_is_read_and_gets_the_new_column(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(row())
        ledger.append(row(failure="connect"))
    part = next(tmp_path.glob("part-*"))
    old = pq.read_table(part).drop_columns("failure_text")
    pq.write_table(old.replace_schema_metadata({"pv_rl.ledger": "1"}), part)
    found = read_ledger(tmp_path)
    assert found.column_names == schema().names
    assert found.column("failure_text").to_pylist() == [None, None]
    assert found.column("failure").to_pylist() == [None, "connect"]


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(tmp_path, caplog):
    path = tmp_path / "journal-20990101T000000-0.jsonl"
    path.write_text('{"pv_rl.ledger":3}\n{"row_id":"x"}\n')
    Ledger(tmp_path)
    assert "newer pv-rl" in caplog.text
    assert path.exists()
    with pytest.raises(DataError, match="newer pv-rl"):
        read_ledger(tmp_path)


@pytest.mark.parametrize("limit", [60, 10**6])
def test_what_a_killed_writer_acknowledged_is_there_once(tmp_path, limit):
    code = f"""
ledger = Ledger(folder, rows={limit})
for i in range(10**9):
    ledger.append(row(f"{{i}}", "trace" * 5000))
    print(i, flush=True)
"""
    writer = start(code, tmp_path)
    acknowledged = [int(writer.stdout.readline()) for _ in range(250)]
    writer.kill()
    acknowledged += [int(line) for line in writer.communicate()[0].splitlines()]
    for _ in range(2):  # as it was left, then folded by the next writer
        found = [int(uid) for uid in uids(tmp_path)]
        assert len(found) - len(acknowledged) in (0, 1)  # one may be written and not yet acknowledged
        assert sorted(found) == list(range(len(found)))
        Ledger(tmp_path).close()
    assert not files(tmp_path, "journal-*")


def test_a_line_that_was_cut_off_hides_no_other(tmp_path, caplog):
    ledger = Ledger(tmp_path)
    for number in range(3):
        ledger.append(row(f"{number}"))
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert uids(tmp_path) == ["0", "1"]
    assert "is incomplete and is left out" in caplog.text
    ledger.close()
    assert uids(tmp_path) == ["0", "1"]


def test_a_damaged_line_hides_no_other_and_is_kept(tmp_path, caplog):
    ledger = Ledger(tmp_path)
    for number in range(4):
        ledger.append(row(f"{number}"))
    path = journal(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"{", b"#", 1)
    lines[2] = lines[2].replace(b'"fluent"', b'"maybe?"')
    lines[3:3] = [lines[3].replace(b'"score":1.0', b'"score":' + b"9" * 400), b"[" * 100_000 + b"\n"]
    path.write_bytes(b"".join(lines))
    assert uids(tmp_path) == ["2", "3"]
    ledger.close()
    assert uids(tmp_path) == ["2", "3"]
    for number in (2, 3, 4, 5):
        assert f"line {number} of" in caplog.text
    (kept,) = tmp_path.glob("damaged-*")
    assert kept.read_bytes() == b"".join(lines)


def test_the_journal_of_a_living_writer_is_left_alone(tmp_path):
    first = Ledger(tmp_path)
    first.append(row("first"))
    second = Ledger(tmp_path)
    assert files(tmp_path, "part-*") == []
    second.append(row("second"))
    first.append(row("first again"))
    assert sorted(uids(tmp_path)) == ["first", "first again", "second"]


def test_writers_of_one_folder_lose_nothing_and_repeat_no_id(tmp_path):
    code = """
ledger = Ledger(folder, rows=40)
for i in range(100):
    ledger.append(row(f"{name}{i}"))
if name in "ab":
    ledger.close()
"""
    writers = [start(code, tmp_path, name) for name in "abcd"]
    assert [(writer.communicate(timeout=300)[0], writer.returncode) for writer in writers] == [("", 0)] * 4
    with ThreadPoolExecutor(2) as pool:  # they fold what c and d left, at the same time
        for ledger in pool.map(lambda _: Ledger(tmp_path), range(2)):
            ledger.close()
    table = read_ledger(tmp_path)
    assert sorted(table.column("uid").to_pylist()) == sorted(f"{n}{i}" for n in "abcd" for i in range(100))
    assert len(set(table.column("row_id").to_pylist())) == 400
    assert not files(tmp_path, "journal-*")


def test_a_ledger_can_be_read_while_it_is_written(tmp_path):
    code = """
import time
ledger = Ledger(folder, rows=15)
for i in range(10**9):
    ledger.append(row(f"{i}"))
    print(i, flush=True)
    time.sleep(0.002)
"""
    writer = start(code, tmp_path)
    try:
        for _ in range(30):
            known = int(writer.stdout.readline())
            found = sorted(int(uid) for uid in uids(tmp_path))
            assert found == list(range(len(found)))
            assert len(found) > known
    finally:
        writer.kill()
        writer.communicate()


def test_a_crash_between_a_part_and_the_end_of_its_journal_repeats_no_row(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(row("0"))
    path = journal(tmp_path)
    shutil.copy(path, tmp_path / "copy")
    ledger.close()
    (tmp_path / "copy").rename(path)
    part = next(tmp_path.glob("part-*"))
    before = part.stat().st_ino
    assert uids(tmp_path) == ["0"]
    Ledger(tmp_path).close()
    assert uids(tmp_path) == ["0"]
    assert not path.exists()
    assert part.stat().st_ino == before  # not written again: somebody may have added marks to it


@pytest.mark.parametrize("late", [False, True])
def test_a_journal_that_becomes_a_part_while_it_is_read_is_read_once(tmp_path, monkeypatch, late):
    ledger = Ledger(tmp_path)
    ledger.append(row("0"))

    def tables(path):
        found = list(journals.tables(path)) if late else None
        ledger.close()
        return found or journals.tables(path)

    monkeypatch.setattr(module, "tables", tables)
    assert uids(tmp_path) == ["0"]


def test_a_crash_while_a_part_is_written_leaves_the_journal_to_count(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(row("0"))
    name = journal(tmp_path).stem.removeprefix("journal-")
    (tmp_path / f".part-{name}.parquet.4711.part").write_bytes(b"PAR1 half of it")
    assert uids(tmp_path) == ["0"]
    ledger.close()
    assert uids(tmp_path) == ["0"]
    assert os.listdir(tmp_path) == [f"part-{name}.parquet"]


def test_a_full_disk_is_said_and_the_rows_before_and_after_are_whole(tmp_path):
    code = """
import resource
ledger = Ledger(folder)
ledger.append(row("before"))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    ledger.append(row("lost", "x" * 80_000))
except LedgerUnavailable as error:
    print("said" if "Free disk space" in str(error) else error)
ledger.append(row("after"))
"""
    assert start(code, tmp_path).communicate(timeout=300)[0].split() == ["said"]
    assert uids(tmp_path) == ["before", "after"]


def test_a_part_that_cannot_be_written_is_tried_again_later(tmp_path, monkeypatch, caplog):
    def full(path):
        raise OSError(28, "No space left on device")

    ledger = Ledger(tmp_path, rows=2)
    with monkeypatch.context() as patch:
        patch.setattr(module, "fold", full)
        for number in range(3):
            ledger.append(row(f"{number}"))
    assert caplog.text.count("stays: [Errno 28]") == 1
    assert uids(tmp_path) == ["0", "1", "2"]
    assert files(tmp_path, "part-*") == []
    ledger.append(row("3"))
    assert (len(files(tmp_path, "part-*")), files(tmp_path, "journal-*")) == (1, [])
    assert uids(tmp_path) == ["0", "1", "2", "3"]


def test_threads_share_one_ledger(tmp_path):
    with Ledger(tmp_path, rows=30) as ledger, ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda i: ledger.append(row(f"{i}")), range(100)))
    table = read_ledger(tmp_path)
    assert dict(zip(ids, map(str, range(100)), strict=True)) == dict(
        zip(table.column("row_id").to_pylist(), table.column("uid").to_pylist(), strict=True)
    )


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable, match="option ledger") as raised:
        Ledger(tmp_path / "file" / "ledger")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_without_pyarrow_the_remedy_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SetupError, match="pip install 'pyarrow"):
        Ledger(tmp_path)


def test_the_ledger_is_imported_without_pyarrow():
    code = "import sys, pv_judge.ledger; print('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_no_key_of_the_environment_enters(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_API_KEY", "sk-planted-4711")
    ledger = Ledger(tmp_path, rows=2)
    for _ in range(3):
        ledger.append(LedgerRow(**FULL))
    held = [path.read_bytes() for path in tmp_path.iterdir()]
    held += [json.dumps(read_ledger(tmp_path).to_pylist(), default=str).encode()]
    assert len(held) == 3
    assert not any(b"planted" in one for one in held)
    assert any(b"deepseek-chat" in one for one in held)


def test_a_column_of_marks_is_kept(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(row("0"))
    part = next(tmp_path.glob("part-*"))
    table = pq.read_table(part)
    pq.write_table(table.add_column(0, "human", pa.array([True])), part)
    Ledger(tmp_path).append(row("1"))
    marked = read_ledger(tmp_path)
    assert marked.column_names[0] == "row_id"
    assert marked.select(["uid", "human"]).to_pylist() == [
        {"uid": "0", "human": True},
        {"uid": "1", "human": None},
    ]
    assert read_ledger(part).num_rows == 1


def test_what_is_no_ledger_is_refused(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    with pytest.raises(DataError, match="contains no ledger"):
        read_ledger(tmp_path)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "part-1.parquet")
    with pytest.raises(DataError, match="it has no column row_id, time"):
        read_ledger(tmp_path)
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="cannot be read as a part"):
        read_ledger(tmp_path)
    (tmp_path / "part-1.parquet").unlink()
    for head in ("notes", "[" * 100_000):
        (tmp_path / "journal-1.jsonl").write_text(f"{head}\n")
        with pytest.raises(DataError, match="is not a journal"):
            read_ledger(tmp_path)


def test_the_fields_of_the_page_are_those_of_a_row():
    page = (ROOT / "docs" / "guides" / "ledger.md").read_text(encoding="utf-8")
    fields = page.partition("## Fields")[2].partition("\n## ")[0]
    names = set(re.findall("`([a-z_]+)`", fields)) - {"cache"}
    assert set(get_args(Decision)) < names
    assert names - set(get_args(Decision)) <= {one.name for one in dataclasses.fields(LedgerRow)}
