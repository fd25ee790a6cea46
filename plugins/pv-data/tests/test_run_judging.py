"""Judging: each proof gets its votes and its label, nothing is lost, and nothing that was answered is paid twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from panel import JudgeServer, Script, answer, by_mark, make_tables, settings

from pv_data.asking.asker import Stopped
from pv_data.asking.kept_answers import Unanswered
from pv_data.records import Aside, Judgment, Label, Proof
from pv_data.run.config import RunConfig
from pv_data.run.folder import answers_path, budget_of, fold, spent
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.run.stage import budget_shares, owners, shards, write
from pv_data.table import read_rows
from pv_judge.answer import JudgeFailure
from pv_judge.config import Limits


def labels(run: Path) -> dict[str, Label]:
    return {one.proof_id: one for one in read_rows(run / "labels", Label)}


def test_each_proof_gets_its_votes_and_the_label_that_they_make(tmp_path):
    make_tables(tmp_path, 130)
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
        assert len(server.chats()) == 130 * 4
        asked = Counter(one["body"]["model"] for one in server.chats())
    assert asked == {"big": 390, "small": 130}
    proofs = list(read_rows(tmp_path / "proofs", Proof))
    found = labels(tmp_path)
    assert set(found) == {proof.id for proof in proofs}
    for proof in proofs:
        assert found[proof.id].value is proof.known
        assert found[proof.id].votes == (proof.known,) * 4
        assert found[proof.id].judges == ("big", "big", "big", "small")
        assert found[proof.id].rule == "unanimous 4 of 4"
    judgments = list(read_rows(tmp_path / "judgments", Judgment))
    assert len({one.id for one in judgments}) == 520
    assert {one.origin.sample for one in judgments if one.judge == "big"} == {0, 1, 2}
    assert all(one.origin.usd > 0 and one.origin.time for one in judgments)


def test_an_answer_that_contradicts_itself_accepts_nothing(tmp_path):
    make_tables(tmp_path, 2)
    odd = answer(True).replace('"condition3_satisfied": true', '"condition3_satisfied": false')
    with JudgeServer(Script(reply=lambda *_: odd)) as server:
        run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
    assert [one.value for one in labels(tmp_path).values()] == [False, False]


def test_damaged_answers_are_asked_for_again_once(tmp_path):
    make_tables(tmp_path, 4)
    with JudgeServer(Script(reply=by_mark)) as server:
        job = Judging(run=tmp_path, config=settings(tmp_path, server.url))
        run_local(job, 1)
        first, asked = labels(tmp_path), len(server.chats())
        with sqlite3.connect(answers_path(tmp_path)) as cache:
            cache.execute("UPDATE answers SET text = x'ff' WHERE rowid = 2")
            cache.execute("UPDATE answers SET text = '{' WHERE rowid = 3")
        for _ in range(2):
            for part in (tmp_path / "labels").iterdir():
                part.unlink()
            run_local(job, 1)
            assert labels(tmp_path) == first
            assert len(server.chats()) == asked + 2


def test_a_damaged_record_of_a_failure_counts_as_none(tmp_path):
    failures = Unanswered(tmp_path / "unanswered.sqlite")
    failures.put("k", 0, JudgeFailure("cut", "truncated"), "m")
    assert failures.last("k").requests == 1
    for text in (b"[1", b"[1, 2]", b'["no kind", "", ""]', b"\xff"):
        failures.put("k", 0, JudgeFailure("cut", "truncated"), "m")
        with sqlite3.connect(tmp_path / "unanswered.sqlite") as file:
            file.execute("UPDATE answers SET text = ?", (text,))
        assert failures.last("k") is None


def test_a_second_run_asks_nothing(tmp_path):
    make_tables(tmp_path, 70)
    with JudgeServer(Script(reply=by_mark)) as server:
        job = Judging(run=tmp_path, config=settings(tmp_path, server.url))
        run_local(job, 1)
        first = labels(tmp_path)
        run_local(job, 1)
        for part in (tmp_path / "labels").iterdir():  # the answers are kept, so the tables can be made again
            part.unlink()
        run_local(job, 1)
        assert len(server.chats()) == 280
    assert labels(tmp_path) == first


def test_a_proof_that_lacks_a_vote_goes_aside_with_the_reason_and_keeps_its_other_judgments(tmp_path):
    make_tables(tmp_path, 20)

    def torn(prompt: str, model: str) -> str:
        return "no JSON" if "number 7:" in prompt else by_mark(prompt, model)

    with JudgeServer(Script(reply=torn)) as server:
        run_local(Judging(run=tmp_path, config=settings(tmp_path, server.url)), 1)
        (aside,) = read_rows(tmp_path / "aside", Aside)
        assert (aside.stage, aside.reason) == ("judge", "no answer: invalid_json")
        assert "4 of 4 votes are missing" in aside.detail
        assert aside.row not in labels(tmp_path)
        assert len(labels(tmp_path)) == 19
        assert len(server.chats()) == 19 * 4 + 4 * 3  # three attempts a vote


def test_money_ends_the_run_before_the_limit_and_more_money_goes_on(tmp_path):
    make_tables(tmp_path, 100)
    with JudgeServer(Script(reply=by_mark)) as server:
        whole = tmp_path / "whole"
        make_tables(whole, 100)
        run_local(Judging(run=whole, config=settings(whole, server.url)), 1)
        price = spent(whole).usd
        asked = len(server.chats())
        job = Judging(run=tmp_path, config=settings(tmp_path, server.url, budget_usd=price / 2))
        with pytest.raises(Stopped, match="Raise budget_usd"):
            run_local(job, 1)
        assert price / 4 < spent(tmp_path).usd <= price / 2
        for attempt in range(2):
            fold(tmp_path)
            job = replace(job, config=settings(tmp_path, server.url, budget_usd=price * 1.2))
            run_local(job, 1)
            assert len(server.chats()) == 2 * asked, attempt
        assert spent(tmp_path).usd == pytest.approx(price)
    assert labels(tmp_path) == labels(whole)


def test_a_judge_that_is_down_ends_the_run_and_loses_nothing(tmp_path):
    make_tables(tmp_path, 100)
    with JudgeServer(Script(reply=by_mark)) as server:
        job = Judging(run=tmp_path, config=settings(tmp_path, server.url, patience=5))
        server.go_down()
        with pytest.raises(Stopped, match="gave no usable answer to 5 questions in a row"):
            run_local(job, 1)
        assert labels(tmp_path) == {}
        assert not (tmp_path / "aside").exists()
        server.come_back()
        run_local(job, 1)
    assert len(labels(tmp_path)) == 100


def test_several_processes_make_the_same_tables(tmp_path):
    one, three = tmp_path / "one", tmp_path / "three"
    for run in (one, three):
        make_tables(run, 300, words="TORN")
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=one, config=settings(one, server.url)), 1)
        asked = len(server.chats())
        run_local(Judging(run=three, config=settings(three, server.url, workers=3)), 3)
        assert len(server.chats()) == 2 * asked
    assert labels(one) == labels(three)
    assert {one.value for one in labels(one).values()} == {True, False, None}
    for run in (one, three):
        assert spent(run).usd == pytest.approx(
            sum(row.origin.usd for row in read_rows(run / "judgments", Judgment))
        )
    with sqlite3.connect(three / "answers.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (asked,)


def limited(config: RunConfig, **limits: Limits) -> RunConfig:
    return replace(
        config, models={name: replace(config.models[name], limits=one) for name, one in limits.items()}
    )


def test_a_process_with_fewer_places_gets_fewer_chunks(tmp_path):
    config = settings(tmp_path, "http://127.0.0.1:1/v1", workers=8)
    config = limited(config, big=Limits(concurrency=308), small=Limits(concurrency=102))
    chunks = Counter(islice(owners(Judging(run=tmp_path, config=config), 8), 327))
    # 39 of 308 places at the one judge, or 38; 13 of 102 at the other, or 12: all are at work for as long.
    shares = [39 / 308] * 4 + [38 / 308] * 2 + [12 / 102] * 2
    assert shards(config, {"big", "small"}, 8) == pytest.approx([one / sum(shares) for one in shares])
    for part, share in enumerate(shares):
        assert chunks[part] / share == pytest.approx(327 / sum(shares), rel=0.02)


def test_what_is_limited_by_the_minute_is_divided_equally(tmp_path):
    config = settings(tmp_path, "http://127.0.0.1:1/v1", workers=8)
    config = limited(
        config, big=Limits(concurrency=12), small=Limits(concurrency=100, requests_per_minute=60)
    )
    assert shards(config, {"big"}, 8)[::7] == pytest.approx([2 / 12, 1 / 12])
    assert shards(config, {"small"}, 8) == pytest.approx([1 / 8] * 8, rel=0.05)
    assert shards(config, set(), 3) == pytest.approx([1 / 3] * 3)
    assert [*islice(owners(Judging(run=tmp_path, config=config), 1), 3)] == [0, 0, 0]


def test_money_goes_where_there_is_something_to_ask(tmp_path):
    make_tables(tmp_path, 130)  # chunks of 64, 64 and 2 proofs
    free = Judging(run=tmp_path, config=settings(tmp_path, "http://127.0.0.1:1/v1", workers=4))
    job = replace(free, config=replace(free.config, budget_usd=5.0))
    assert budget_shares(free, 4) == [1.0] * 4
    assert budget_shares(job, 4) == pytest.approx([64 / 130, 64 / 130, 2 / 130, 0.0])
    assert budget_of(tmp_path, job.config, budget_shares(job, 4)[2]).budget.usd_per_run == pytest.approx(
        5 * 2 / 130
    )
    write(job, next(job.chunks()), {})
    assert budget_shares(job, 4) == pytest.approx([0.0, 64 / 66, 2 / 66, 0.0])


def test_money_that_suffices_for_one_process_suffices_for_several(tmp_path):
    one, several = tmp_path / "one", tmp_path / "several"
    for run in (one, several):
        make_tables(run, 150)
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=one, config=settings(one, server.url)), 1)
        enough = 1.3 * spent(one).usd
        run_local(Judging(run=several, config=settings(several, server.url, workers=4, budget_usd=enough)), 4)
    assert labels(one) == labels(several)
    assert spent(several).usd <= enough


def test_another_sampling_is_another_question(tmp_path):
    make_tables(tmp_path, 10)
    with JudgeServer(Script(reply=by_mark)) as server:
        config = settings(tmp_path, server.url)
        run_local(Judging(run=tmp_path, config=config), 1)
        for path in (tmp_path / "labels").iterdir():
            path.unlink()
        models = {
            name: replace(one, sampling={"temperature": 0.7, "max_tokens": 100})
            for name, one in config.models.items()
        }
        run_local(Judging(run=tmp_path, config=replace(config, models=models)), 1)
        assert len(server.chats()) == 80


@pytest.mark.paths  # the local executor, which make test runs, shares all but the way rows reach a worker
def test_ray_makes_the_same_tables(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'pv-data[ray]'")
    from pv_data.run.ray_executor import ray_started, run_on_ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    here, there = tmp_path / "here", tmp_path / "there"
    for run in (here, there):
        make_tables(run, 150, words="TORN")
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=here, config=settings(here, server.url)), 1)
        asked = len(server.chats())
        job = Judging(run=there, config=settings(there, server.url, workers=2))
        with ray_started(2):
            run_on_ray(job, 2)
            with ray_started(2):  # by the stage before
                run_on_ray(job, 2)
            assert ray.is_initialized()
            assert len(server.chats()) == 2 * asked
            assert labels(there) == labels(here)
            server.go_down()
            for path in (there / "labels").iterdir():
                path.unlink()
            (there / "answers.sqlite").unlink()
            with pytest.raises(Stopped, match="in a row"):
                run_on_ray(replace(job, config=settings(there, server.url, workers=2, patience=3)), 2)
        assert not ray.is_initialized()
