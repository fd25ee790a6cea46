"""The cache of answers: many writers, a writer that is killed, a stale key, a file that is something else."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from pv_judge.answer import Usage
from pv_judge.cache import (
    APPLICATION_ID,
    SCHEMA,
    VERSION,
    AnswerCache,
    CachedAnswer,
    CacheUnavailable,
    cache_key,
)
from pv_rl.errors import ConfigError, DataError

PARTS = {
    "template_hash": "a1",
    "model": "m",
    "sampling": {"temperature": 0.0, "extra_body": {"seed": 1, "top_k": 5}},
    "text": "a trace",
}
PRELUDE = """
import sys
from pv_judge.answer import Usage
from pv_judge.cache import AnswerCache, CachedAnswer, CacheUnavailable
def answer(text): return CachedAnswer(text=text, usage=Usage(), model="m")
path, name = sys.argv[1:3]
"""


def answer(text="yes", model="m"):
    usage = Usage(prompt_tokens=700, completion_tokens=40, cached_tokens=600)
    return CachedAnswer(text=text, usage=usage, model=model)


def start(code, path, name="x"):
    command = [sys.executable, "-c", PRELUDE + code, str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "answers.sqlite"


def test_an_answer_is_given_back_as_it_was_put(path):
    text = '{"fluent": false, "quote": "∀ε \ud800"}'
    AnswerCache(path).put("k", answer(text, model="deepseek-chat"))
    found = AnswerCache(path).get("k")
    assert (found.text, found.model) == (text, "deepseek-chat")
    assert found.usage == Usage(prompt_tokens=700, completion_tokens=40, cached_tokens=600)
    assert timedelta(0) <= datetime.now(UTC) - found.created < timedelta(minutes=1)


def test_answers_are_counted_over_all_who_write(path):
    first, second = AnswerCache(path), AnswerCache(path)
    assert first.count() == 0
    for n, cache in enumerate((first, second, first)):
        cache.put(f"{n}", answer("yes"))
        cache.put("0", answer("no"))
    assert first.count() == second.count() == 3


def test_what_was_never_put_is_not_found(path):
    assert AnswerCache(path).get("k") is None


def test_the_first_answer_stays(path):
    cache = AnswerCache(path)
    cache.put("k", answer("first"))
    cache.put("k", answer("second"))
    assert cache.get("k").text == "first"


@pytest.mark.parametrize("number", [0, 1, 128, 129, 1000])
def test_several_answers_are_kept_together_and_the_first_of_a_key_stays(path, number):
    cache = AnswerCache(path)
    cache.put("5", answer("first"))
    cache.put_all({f"{i}": answer(f"{i}") for i in range(number)})
    for i in range(number):
        assert cache.get(f"{i}").text == ("first" if i == 5 else f"{i}")
    assert cache.get(f"{max(number, 6)}") is None


@pytest.mark.parametrize("number", [100, 300])
def test_of_several_answers_that_do_not_fit_none_is_kept(path, number):
    cache = AnswerCache(path)
    cache.put("before", answer("before"))
    # room for half of them, of three pages each: of 300 that is more than one statement holds
    cache._db.execute(f"PRAGMA max_page_count = {number // 2 * 3}")
    with pytest.raises(CacheUnavailable, match="full"):
        cache.put_all({f"{i}": answer("x" * 10_000) for i in range(number)})
    assert [cache.get(key) for key in ("0", "1", "99")] == [None] * 3
    assert cache.get("before").text == "before"
    cache.put("after", answer("after"))
    assert cache.get("after").text == "after"


@pytest.mark.parametrize(
    "change",
    [
        {"template_hash": "a2"},
        {"model": "m2"},
        {"text": "a trace "},
        {"sampling": {**PARTS["sampling"], "temperature": 0.5}},
        {"sampling": {**PARTS["sampling"], "max_tokens": 400}},
        {"sampling": {"temperature": 0.0, "extra_body": {"seed": 2, "top_k": 5}}},
    ],
)
def test_another_template_model_parameter_or_text_does_not_hit(path, change):
    cache = AnswerCache(path)
    cache.put(cache_key(**PARTS), answer())
    assert cache.get(cache_key(**PARTS)) is not None
    assert cache.get(cache_key(**{**PARTS, **change})) is None


def test_the_order_of_parameters_does_not_matter():
    turned = {"extra_body": {"top_k": 5, "seed": 1}, "temperature": 0.0}
    assert cache_key(**PARTS) == cache_key(**{**PARTS, "sampling": turned})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_a_parameter_that_is_not_json_is_refused(value):
    with pytest.raises(ConfigError, match="cannot"):
        cache_key(**{**PARTS, "sampling": {"temperature": value}})


def test_processes_that_open_a_new_file_at_once_all_write_to_it(path):
    code = """
cache = AnswerCache(path)
for i in range(150):
    cache.put(f"shared {i}", answer(name))
    cache.put(f"{name} {i}", answer(name))
"""
    writers = [start(code, path, name) for name in "abcd"]
    assert [(writer.communicate(timeout=300)[0], writer.returncode) for writer in writers] == [("", 0)] * 4
    cache = AnswerCache(path)
    assert all(cache.get(f"{name} {i}").text == name for name in "abcd" for i in range(150))
    assert all(cache.get(f"shared {i}").text in "abcd" for i in range(150))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM answers").fetchone() == (5 * 150,)


def test_answers_outlive_a_writer_that_is_killed(path):
    code = """
cache = AnswerCache(path)
for i in range(10**9):
    cache.put(f"{i}", answer(f"text {i}" * 20))
    print(i, flush=True)
"""
    writer = start(code, path)
    acknowledged = [int(writer.stdout.readline()) for _ in range(200)]
    writer.kill()
    acknowledged += [int(line) for line in writer.communicate()[0].splitlines() if line.strip()]
    cache = AnswerCache(path)
    assert acknowledged == list(range(len(acknowledged)))
    assert all(cache.get(f"{i}").text == f"text {i}" * 20 for i in acknowledged)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    cache.put("next", answer())
    assert cache.get("next") is not None


def test_threads_share_one_cache(path):
    cache = AnswerCache(path)

    def work(i):
        cache.put(f"{i % 50}", answer(f"{i % 50}"))
        return cache.get(f"{i % 50}").text == f"{i % 50}"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_a_full_disk_is_said_and_what_was_put_is_there(path):
    code = """
import resource
cache = AnswerCache(path)
cache.put("first", answer("first"))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    for i in range(1000):
        cache.put(f"{i}", answer("x" * 10_000))
except CacheUnavailable as error:
    print(i > 5, cache.get("first").text, "Free disk space" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
cache.put("last", answer("last"))
print(cache.get("last").text)
"""
    assert start(code, path).communicate(timeout=300)[0].split() == ["True", "first", "True", "last"]


def test_a_file_that_another_process_holds_is_waited_for_once_and_not_by_each_answer(path, monkeypatch):
    monkeypatch.setattr("pv_judge.cache.BUSY_S", 0.1)
    ours = AnswerCache(path)
    ours.put("a", answer())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(CacheUnavailable, match="database is locked"):
        ours.put("b", answer())
    holder.execute("ROLLBACK")
    with pytest.raises(CacheUnavailable, match="left alone for a minute"):
        ours.put("b", answer())
    assert ours.get("a").text == "yes"
    monkeypatch.setattr(ours, "_rest_until", 0.0)
    ours.put("b", answer())
    assert ours.get("b").text == "yes"


def test_a_path_that_cannot_be_opened_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheUnavailable, match=r"judge\.cache"):
        AnswerCache(tmp_path / "file" / "answers.sqlite")
    with pytest.raises(CacheUnavailable, match=r"judge\.cache"):
        AnswerCache(tmp_path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(DataError, match="not a cache"):
        AnswerCache(path)
    assert path.read_text() == "not a database, " * 100


def test_the_database_of_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE answers (key, text)")
    before = path.read_bytes()
    with pytest.raises(DataError, match="something else"):
        AnswerCache(path)
    assert path.read_bytes() == before


def test_a_cache_of_a_newer_version_is_refused(path):
    AnswerCache(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(DataError, match="newer pv-rl"):
        AnswerCache(path)


def test_a_row_that_a_damaged_index_leads_to_is_not_taken_for_another(path):
    cache = AnswerCache(path)
    cache.put_all({"a": answer("of a"), "b": answer("of b")})
    with sqlite3.connect(path) as db:
        db.execute("UPDATE answers SET key = 'c' WHERE key = 'a'")
    assert (cache.get("c"), cache.damaged) == (None, 1)
    assert cache.get("b").text == "of b"


def test_a_file_of_version_1_is_read_and_written_without_checksums(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.execute(SCHEMA.replace(",\n    crc INTEGER NOT NULL", ""))
        db.execute("INSERT INTO answers VALUES ('a', x'6f6c64', 'm', 1, 2, 0, 5.0)")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
    cache = AnswerCache(path)
    cache.put("b", answer("new"))
    assert (cache.get("a").text, cache.get("b").text) == ("old", "new")
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", b"\xff\xfe\xfa"),
        ("model", b"\xff"),
        ("model", "CAST(x'ff' AS TEXT)"),
        ("created", 1e300),
        ("created", -1e20),
        ("created", 9e999),
        ("created", "yesterday"),
        ("prompt_tokens", "many"),
        ("completion_tokens", -4),
        ("cached_tokens", 0.5),
        ("text", b"another answer, which can be read"),
        ("completion_tokens", 7),
        ("crc", 0),
    ],
)
def test_a_damaged_row_is_missing_and_counted_and_the_next_answer_takes_its_place(
    path, column, value, caplog
):
    cache = AnswerCache(path)
    for key in ("before", "k", "k after"):
        cache.put(key, answer(key))
    raw = isinstance(value, str) and value.startswith("CAST")
    with sqlite3.connect(path) as db:
        db.execute(
            f"UPDATE answers SET {column} = {value if raw else '?'} WHERE key = 'k'", () if raw else (value,)
        )
    assert (cache.get("k"), cache.damaged) == (None, 1)
    assert "has a damaged answer" in caplog.text
    AnswerCache(path).put("k", answer("paid for again"))  # by another process
    assert [cache.get(key).text for key in ("before", "k", "k after")] == [
        "before",
        "paid for again",
        "k after",
    ]
    assert cache.damaged == 1


def pages_of(path) -> list[bytes]:
    raw = path.read_bytes()
    return [raw[begin : begin + 4096] for begin in range(0, len(raw), 4096)]


def filled(path, number=300) -> None:
    cache = AnswerCache(path)
    cache.put_all({f"{i:03}": answer(f"text {i} " * 40) for i in range(number)})
    cache._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    cache.close()


def test_damaged_pages_cost_their_own_rows_and_no_others(path):
    filled(path)
    pages = pages_of(path)
    bad = next(number for number, page in enumerate(pages) if b"text 150 " in page)
    pages[bad] = b"\xa5" * 4096
    path.write_bytes(b"".join(pages))
    cache = AnswerCache(path)
    found = [cache.get(f"{i:03}") for i in range(300)]
    there = {i for i, one in enumerate(found) if one is not None}
    assert all(found[i].text == f"text {i} " * 40 for i in there)
    assert 150 not in there
    assert len(there) > 250
    assert cache.damaged == 300 - len(there)
    cache.put("new", answer("new"))
    assert cache.get("new").text == "new"


def test_a_damaged_write_ahead_log_costs_what_was_in_it(path):
    filled(path)
    keeper = AnswerCache(path)
    keeper.put("late", answer("late"))
    log = path.with_name(path.name + "-wal")
    copy = path.with_name("copy.sqlite")
    copy.write_bytes(path.read_bytes())
    raw = bytearray(log.read_bytes())
    raw[100:200] = b"\xa5" * 100
    copy.with_name("copy.sqlite-wal").write_bytes(raw)
    cache = AnswerCache(copy)
    assert (cache.get("late"), cache.get("007").text) == (None, "text 7 " * 40)
    cache.put("late", answer("again"))
    assert cache.get("late").text == "again"


@pytest.mark.parametrize("begin", [0, 16, 100, "truncated"])
def test_a_file_that_is_damaged_as_a_whole_is_refused_with_what_to_do(path, begin):
    filled(path)
    raw = bytearray(path.read_bytes())
    if begin == "truncated":
        del raw[len(raw) // 2 :]
    else:
        raw[begin : begin + 64] = b"\xa5" * 64
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"not a cache.*\.recover.*another file"):
        AnswerCache(path)
    assert path.read_bytes() == raw


@pytest.mark.parametrize("replace", ["file", "nothing", "folder"])
def test_what_is_paid_for_does_not_go_into_a_file_that_was_replaced(path, replace):
    cache = AnswerCache(path)
    cache.put("first", answer())
    path.rename(path.with_name("moved"))
    if replace == "file":
        AnswerCache(path.with_name("new"))
        path.with_name("new").rename(path)
    elif replace == "folder":
        path.mkdir()
    with pytest.raises(CacheUnavailable, match=r"judge\.cache"):
        cache.put("second", answer())


def test_an_answer_that_nobody_can_use_makes_room(path):
    cache = AnswerCache(path)
    cache.put("k", answer("{"))
    cache.drop("k")
    cache.put("k", answer("{}"))
    assert cache.get("k").text == "{}"


def test_the_file_holds_no_trace(path):
    cache = AnswerCache(path)
    cache.put(cache_key(**{**PARTS, "text": "a trace that is planted"}), answer())
    cache.close()
    assert all(b"planted" not in file.read_bytes() for file in path.parent.iterdir())
