"""A run that is stopped keeps what it has paid for, and says the cause and not its consequence."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from judge_server.script import Latency
from panel import JudgeServer, Script, answer, by_mark, make_tables, settings

from pv_data.asking import asker
from pv_data.asking.asker import Stopped
from pv_data.asking.settings import AHEAD
from pv_data.records import Aside, Judgment, Label, Proof
from pv_data.run.folder import forget_doubtful, forget_failures, unanswered_path
from pv_data.run.judge import Judging, JudgingWork
from pv_data.run.local_executor import run_local
from pv_data.run.worker import gather_all, root_cause
from pv_data.table import read_rows, write_part
from pv_judge.cache import AnswerCache, CacheUnavailable
from pv_judge.config import Breaker
from pv_rl.errors import ConfigError, DataError

CHILD = """
import sys
from pathlib import Path
from panel import settings
from pv_data.asking.asker import Stopped
from pv_data.run.judge import Judging
def judge(job, workers):
    if {executor!r} == "local":
        from pv_data.run.local_executor import run_local
        return run_local(job, workers)
    from pv_data.run.ray_executor import ray_started, run_on_ray
    with ray_started(workers):
        run_on_ray(job, workers)
if __name__ == "__main__":
    run = Path({run!r})
    try:
        judge(Judging(run=run, config=settings(run, {url!r}, workers={workers})), {workers})
    except Stopped as stopped:
        print(stopped)
        sys.exit(3)
"""


@pytest.mark.parametrize(
    ("executor", "workers"), [("local", 1), ("local", 2), pytest.param("ray", 2, marks=pytest.mark.paths)]
)
def test_after_ctrl_c_every_answer_that_left_the_server_is_kept(executor, workers, tmp_path):
    if executor == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'pv-data[ray]'")
    make_tables(tmp_path, 400)
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.3, sigma=0.3))) as server:
        program = tmp_path / "child.py"
        program.write_text(
            CHILD.format(
                run=str(tmp_path),
                url=server.url,
                workers=workers,
                executor=executor,
            )
        )
        child = subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may run us with it ignored
        )
        while len(server.chats()) < 60:
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all of them
        said, _ = child.communicate(timeout=60)
        sent = len(server.chats())
    assert child.returncode == 3
    assert "it was interrupted" in said
    assert sent < 1600
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (sent,)


def test_a_server_that_is_gone_ends_the_run_and_a_stop_does_not_wait_for_it(tmp_path, monkeypatch):
    make_tables(tmp_path, 40)
    breaker = {"failures": 2, "probe_after_s": 60}
    config = settings(tmp_path, "http://127.0.0.1:9/v1")
    slow = {name: replace(one, breaker=Breaker(**breaker)) for name, one in config.models.items()}
    job = Judging(run=tmp_path, config=replace(config, models=slow))
    monkeypatch.setattr(asker, "OUTAGE_S", 1.0)
    with pytest.raises(
        Stopped, match=r"not answered for 1 s; the last failure: http://127.0.0.1:9/v1: .*connect"
    ):
        run_local(job, 1)
    monkeypatch.setattr(asker, "OUTAGE_S", 600.0)
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(Stopped, match="it was interrupted"):
        run_local(job, 1)
    assert time.monotonic() - begin < 20


def test_what_goes_wrong_in_one_process_ends_the_others(tmp_path):
    make_tables(tmp_path, 640)
    lost = Proof(problem_id="gone", source="Test", method="proof", model="m", text="Proof of nothing.")
    write_part(tmp_path / "proofs" / "00-00000-first.parquet", Proof, [lost])
    (tmp_path / "proofs" / "00-00000-first.parquet").rename(tmp_path / "proofs" / "00-0.parquet")
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.1))) as server:
        with pytest.raises(DataError, match="the problem gone of the proof"):
            run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url, workers=2)), 2)
        assert len(server.chats()) < 1000  # of 1,280 that the other process had to ask


def test_a_disk_that_is_full_ends_the_run_before_much_is_lost(tmp_path, monkeypatch):
    make_tables(tmp_path, 400)
    put_all = AnswerCache.put_all

    def full(self, answers):
        if self.count() > 100:
            raise CacheUnavailable("the disk is full")
        put_all(self, answers)

    monkeypatch.setattr(AnswerCache, "put_all", full)
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.05))) as server:
        with pytest.raises(CacheUnavailable, match="the disk is full"):
            run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
        sent = len(server.chats())
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        (kept,) = db.execute("SELECT count(*) FROM answers").fetchone()
    assert sent - kept <= 2 * (16 + 1 + 16 // AHEAD)  # in the works of the two judges


def test_a_disk_that_is_slow_holds_up_no_place_at_the_judge_until_some_answers_wait_for_it(
    tmp_path, monkeypatch
):
    make_tables(tmp_path, 100)
    free, put_all = threading.Event(), AnswerCache.put_all

    def slow(self, answers):
        free.wait(60)
        put_all(self, answers)

    monkeypatch.setattr(AnswerCache, "put_all", slow)
    with JudgeServer(Script(reply=by_mark)) as server:
        config = settings(tmp_path, server.url, concurrency=8)
        running = threading.Thread(target=run_local, args=(Judging(run=tmp_path, config=config), 1))
        running.start()
        in_the_works = 2 * (8 + 1 + 8 // AHEAD)  # of the two judges
        deadline = time.monotonic() + 30
        while len(server.chats()) < in_the_works and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)  # in which more would come
        now = len(server.chats())
        free.set()
        running.join()
        assert now == in_the_works
        assert len(server.chats()) == 400


def test_a_model_that_cannot_be_opened_leaves_nothing_of_those_before_it(tmp_path, monkeypatch):
    monkeypatch.delenv("PV_TEST_NO_KEY", raising=False)
    make_tables(tmp_path, 10)
    config = settings(tmp_path, "http://127.0.0.1:9/v1")
    small = config.models["small"]
    locked = replace(small, endpoints=(replace(small.endpoints[0], api_key_env="PV_TEST_NO_KEY"),))
    config = replace(config, models=config.models | {"small": locked})
    with pytest.raises(ConfigError, match="PV_TEST_NO_KEY"):
        run_local(Judging(run=tmp_path, config=config), 1)
    assert not [one for one in threading.enumerate() if one.name == "answers"]


def test_a_bug_is_not_called_a_stop(tmp_path, monkeypatch):
    make_tables(tmp_path, 200)

    def broken(self, proof, question, seat, number):
        raise ZeroDivisionError("a bug")

    with JudgeServer(Script(reply=by_mark)) as server:
        monkeypatch.setattr(JudgingWork, "_vote", broken)
        with pytest.raises(ZeroDivisionError):
            run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)


def test_the_cause_comes_before_what_follows_from_it():
    stop, end, bug = Stopped("so"), asyncio.CancelledError(), KeyError("x")
    assert root_cause([end, stop, bug]) is bug
    assert root_cause([end, stop]) is stop
    assert root_cause([]) is None

    async def main() -> None:
        done = []

        async def fails() -> None:
            raise Stopped("first")

        async def works() -> None:
            await asyncio.sleep(0.01)
            done.append(1)

        with pytest.raises(Stopped):
            await gather_all([fails(), works()])
        assert done == [1]

    asyncio.run(main())


def test_the_same_question_at_the_same_time_is_asked_once(tmp_path):
    make_tables(tmp_path, 20)
    part = tmp_path / "proofs" / "00-00000.parquet"
    part.with_name("01-00000.parquet").write_bytes(part.read_bytes())
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.1))) as server:
        run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
        assert len(server.chats()) == 80


def test_what_nobody_could_use_is_not_paid_again_by_a_run_that_goes_on(tmp_path):
    make_tables(tmp_path, 1)

    def asked(text: str, attempts: int) -> int:
        """How many requests it takes to judge again what a kill has kept from being written."""
        for table in ("labels", "judgments", "aside"):
            shutil.rmtree(tmp_path / table, ignore_errors=True)
        with JudgeServer(Script(reply=lambda prompt, model: text)) as server:
            config = settings(tmp_path, server.url, attempts=attempts)
            run_local(Judging(run=tmp_path, config=config), 1)
            return len(server.chats())

    said, right = "I cannot say.", answer(True)
    assert asked(said, 2) == 4 * 2
    (before,) = read_rows(tmp_path / "aside", Aside)
    assert asked(said, 2) == 0
    (after,) = read_rows(tmp_path / "aside", Aside)
    assert after == before
    assert asked(said, 5) == 4 * 3
    assert asked(right, 6) == 4
    tokens = {one.origin.completion_tokens for one in read_rows(tmp_path / "judgments", Judgment)}
    assert tokens == {5 * (len(said) // 4) + len(right) // 4}
    forget_failures(tmp_path)  # when the stage is done
    (tmp_path / "answers.sqlite").unlink()
    assert asked(said, 2) == 4 * 2


def test_a_disk_on_which_no_file_of_failures_can_be_made_ends_the_run(tmp_path, monkeypatch):
    make_tables(tmp_path, 30)

    class Full(asker.CacheWriter):
        def __init__(self, path: Path, *, instead: str) -> None:
            if path == unanswered_path(tmp_path):
                raise CacheUnavailable("no space left on device")
            super().__init__(path, instead=instead)

    monkeypatch.setattr(asker, "CacheWriter", Full)
    with JudgeServer(
        Script(reply=lambda prompt, model: "I cannot say.", latency=Latency(median_s=0.05))
    ) as server:
        with pytest.raises(CacheUnavailable, match="no space left"):
            run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url, concurrency=4)), 1)
        assert len(server.chats()) <= 3 * 4


def test_failures_of_a_model_that_did_not_work_count_for_nothing_when_it_does(tmp_path):
    make_tables(tmp_path, 30)
    said = ["I cannot say."]
    with JudgeServer(Script(reply=lambda prompt, model: said[0] or by_mark(prompt, model))) as server:
        job = Judging(run=tmp_path, config=settings(tmp_path, server.url, patience=10))
        with pytest.raises(Stopped, match="Fix the model"):
            run_local(job, 1)
        said[0] = ""
        forget_doubtful(tmp_path)
        run_local(job, 1)
    assert len(list(read_rows(tmp_path / "labels", Label))) == 30
    assert not list(read_rows(tmp_path / "aside", Aside))


def test_who_answered_is_written_down_and_not_who_was_asked_first(tmp_path):
    make_tables(tmp_path, 4)
    with JudgeServer(Script(reply=by_mark)) as server:
        endpoints = [{"url": "http://127.0.0.1:9/v1", "model": "big"}, {"url": server.url, "model": "small"}]
        model = {
            "endpoints": endpoints,
            "timeouts": {"connect_s": 1},
            "breaker": {"failures": 1, "probe_after_s": 60},
        }
        config = settings(tmp_path, server.url, models={"one": model}, panel=[{"model": "one"}])
        run_local(Judging(run=tmp_path, config=config), 1)
    assert {one.origin.model for one in read_rows(tmp_path / "judgments", Judgment)} == {"small"}


def test_a_proof_whose_problem_is_gone_is_said(tmp_path):
    make_tables(tmp_path, 20)
    (tmp_path / "problems" / "00-00000.parquet").unlink()
    with (
        JudgeServer(Script(reply=by_mark)) as server,
        pytest.raises(DataError, match="is in no part of problems/; restore it"),
    ):
        run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
