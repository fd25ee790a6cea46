"""Answers that come together are committed together, and nobody is told that one is kept before it is."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time

import pytest

from pv_judge.answer import Usage
from pv_judge.cache import AnswerCache, CachedAnswer, CacheUnavailable
from pv_judge.cache_writer import CacheWriter


def answer(text: str) -> CachedAnswer:
    return CachedAnswer(text=text, usage=Usage(), model="m")


@pytest.fixture
def disk(monkeypatch):
    """A disk on which a commit lasts until it is let go."""

    class Disk:
        free, commits = threading.Event(), []

    put_all = AnswerCache.put_all

    def slowly(self, answers) -> None:
        assert Disk.free.wait(10)
        Disk.commits.append(sorted(answers))
        put_all(self, answers)

    monkeypatch.setattr(AnswerCache, "put_all", slowly)
    return Disk


def kept(path, keys: str) -> list[str | None]:
    cache = AnswerCache(path)
    found = [cache.get(key) for key in keys]
    cache.close()
    return [one and one.text for one in found]


def test_what_comes_during_a_commit_goes_into_the_next_one(tmp_path, disk):
    async def main() -> None:
        writer = CacheWriter(tmp_path / "answers.sqlite")
        first = asyncio.ensure_future(writer.put("a", answer("1")))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(writer.put(key, answer(key))) for key in "bcd"]
        await asyncio.sleep(0.05)
        assert not first.done()
        assert not any(one.done() for one in others)
        disk.free.set()
        await asyncio.gather(first, *others)
        assert disk.commits == [["a"], ["b", "c", "d"]]
        assert kept(tmp_path / "answers.sqlite", "abcd") == ["1", "b", "c", "d"]
        await writer.aclose()

    asyncio.run(main())


def test_an_answer_is_kept_though_nobody_waits_for_it_any_more(tmp_path, disk):
    async def main() -> None:
        writer = CacheWriter(tmp_path / "answers.sqlite")
        puts = [asyncio.ensure_future(writer.put(key, answer(key))) for key in "ab"]
        await asyncio.sleep(0.05)
        puts.append(asyncio.ensure_future(writer.put("c", answer("c"))))
        await asyncio.sleep(0.05)
        for one in puts:
            one.cancel()
        disk.free.set()
        await writer.aclose()
        assert kept(tmp_path / "answers.sqlite", "abc") == ["a", "b", "c"]

    asyncio.run(main())


def test_all_that_could_not_be_kept_is_told_and_the_file_goes_on(tmp_path, caplog):
    async def main() -> None:
        writer = CacheWriter(tmp_path / "answers.sqlite")
        writer.cache._db.execute("PRAGMA query_only = ON")  # as a disk that is full
        ends = await asyncio.gather(*(writer.put(key, answer(key)) for key in "ab"), return_exceptions=True)
        assert [type(end) for end in ends] == [CacheUnavailable] * 2
        gone = asyncio.ensure_future(writer.put("c", answer("c")))
        await asyncio.sleep(0)
        gone.cancel()
        deadline = time.monotonic() + 10
        while caplog.text.count("cannot be used now") < 2 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert caplog.text.count("cannot be used now") == 2  # nobody waited for the second
        writer.cache._db.execute("PRAGMA query_only = OFF")
        await writer.put("a", answer("kept"))
        assert kept(tmp_path / "answers.sqlite", "abc") == ["kept", None, None]
        await writer.aclose()

    asyncio.run(main())


def test_the_event_loop_does_not_wait_for_another_process_that_writes(tmp_path):
    path = tmp_path / "answers.sqlite"

    async def main() -> None:
        reader, writer = AnswerCache(path), CacheWriter(path)
        await writer.put("a", answer("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        put = asyncio.ensure_future(writer.put("b", answer("b")))
        await asyncio.sleep(0.2)
        before = time.monotonic()
        assert reader.get("a").text == "a"
        assert reader.get("b") is None
        assert time.monotonic() - before < 1
        assert not put.done()
        other.execute("COMMIT")
        await put
        await writer.aclose()
        reader.close()

    asyncio.run(main())


def test_a_file_that_another_process_holds_for_long_is_waited_for(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("pv_judge.cache.BUSY_S", 0.1)
    path = tmp_path / "answers.sqlite"

    async def main() -> None:
        writer = CacheWriter(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        put = asyncio.ensure_future(writer.put("a", answer("a")))
        await asyncio.sleep(0.5)
        assert not put.done()
        assert 1 <= caplog.text.count("Another process, such as") <= 5  # once a wait, and not at full speed
        other.execute("COMMIT")
        await put
        await writer.aclose()
        assert kept(path, "a") == ["a"]
        with pytest.raises(RuntimeError, match="closed"):
            await writer.put("b", answer("b"))

    asyncio.run(main())
