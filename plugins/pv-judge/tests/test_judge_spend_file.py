"""The spend file of a run: what is in flight outlives a kill, and nobody else's run gets into it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pv_judge.spend_file as module
from pv_judge.answer import JudgeFailure, Usage
from pv_judge.budget import BudgetKeeper, Spent, Totals
from pv_judge.config import Budget, Price, read_config
from pv_judge.ray_service import close_local_services, prepare_service, run_folder, shared_service
from pv_judge.service import ServiceConfig
from pv_judge.spend_file import FILE, RECORD, SpendFile, read_spent, spend_path
from pv_rl.errors import DataError, SetupError

PRICES = {"judge": Price(input=2.0, output=10.0)}
OLD = {
    "step": 3,
    "in_step": {"usd": 0.5, "calls": 5, "tokens": 50},
    "in_run": {"usd": 2.0, "calls": 20, "tokens": 200},
}


def keeper(**limits: float) -> BudgetKeeper:
    return BudgetKeeper(Budget(**limits), PRICES)


def restored(folder: Path, **options) -> Spent:
    budget = keeper(calls_per_run=100)
    SpendFile(folder, budget, **options).close()
    return budget.spent


def test_a_kill_between_a_request_and_its_answer_counts_it_at_its_worst(tmp_path):
    code = """
import sys, time
from pv_judge.answer import Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.config import Budget, Price, read_config
from pv_judge.spend_file import SpendFile
budget = BudgetKeeper(Budget(usd_per_run=1), {"judge": Price(input=2.0, output=10.0)})
spending = SpendFile(sys.argv[1], budget)
budget.settle(budget.reserve("judge", 1000, 300), Usage(prompt_tokens=500))
budget.reserve("judge", 1000, 300)
print("sent", flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "sent\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    # 500 tokens for 0.001, and in flight 1000 and 300 for 0.005
    assert read_spent(tmp_path / FILE) == Totals(usd=pytest.approx(0.006), calls=2, tokens=1800)
    assert restored(tmp_path).in_run.calls == 2  # the lock went with the process


def test_a_step_goes_on_in_the_same_start_of_a_run_and_in_no_other(tmp_path):
    budget = keeper(calls_per_step=3)
    first = SpendFile(tmp_path, budget, start="a")
    budget.begin_step(7)
    budget.settle(budget.reserve("judge", 100, 0), Usage(prompt_tokens=100))
    first.close()
    assert restored(tmp_path, start="a") == Spent(
        step=7,
        in_step=Totals(usd=0.0002, calls=1, tokens=100),
        in_run=Totals(usd=0.0002, calls=1, tokens=100),
    )
    assert restored(tmp_path, start="b") == Spent(in_run=Totals(usd=0.0002, calls=1, tokens=100))


def test_a_second_process_is_refused_and_told_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LOCK_S", 0.3)
    code = """
import sys, time
from pv_judge.budget import BudgetKeeper
from pv_judge.config import Budget
from pv_judge.spend_file import SpendFile
spending = SpendFile(sys.argv[1], BudgetKeeper(Budget(), {}))
print("open", flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "open\n"
    with pytest.raises(SetupError, match=rf"pid {child.pid}.*trainer\.default_local_dir"):
        SpendFile(tmp_path, keeper())
    child.kill()
    child.wait()
    SpendFile(tmp_path, keeper()).close()


def test_a_file_that_is_deleted_under_a_run_is_made_again(tmp_path):
    budget = keeper(calls_per_run=5)
    kept = SpendFile(tmp_path, budget)
    budget.reserve("judge", 10, 10)
    (tmp_path / FILE).unlink()
    budget.reserve("judge", 10, 10)
    assert read_spent(tmp_path / FILE).calls == 2
    kept.close()
    with pytest.raises(JudgeFailure, match="could not be written"):  # nothing may be sent that nobody books
        budget.reserve("judge", 10, 10)


@pytest.mark.parametrize("text", [json.dumps(OLD), json.dumps({"in_run": OLD["in_run"]}) + " " * 2000])
def test_files_of_earlier_versions_are_read(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert restored(tmp_path, start="a") == Spent(in_run=Totals(usd=2.0, calls=20, tokens=200))
    assert (tmp_path / FILE).stat().st_size == RECORD
    assert read_spent(tmp_path / FILE) == Totals(usd=2.0, calls=20, tokens=200)


def test_a_digit_that_was_flipped_is_noticed(tmp_path):
    SpendFile(tmp_path, keeper()).close()
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(text.replace('"calls": 0', '"calls": 8'))
    with pytest.raises(
        DataError, match=r"changed without taking out its checksum, crc32.*Restore it, or delete it"
    ):
        read_spent(tmp_path / FILE)


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "1", "{}", "\x00" * RECORD, "[" * 100_000),
        '{"in_run": {"usd": -1, "calls": 0, "tokens": 0}}',
        '{"in_run": {"usd": 1e999, "calls": 0, "tokens": 0}}',
        json.dumps({"start": "s", **OLD, "step": "three"}),
        json.dumps({"start": "s", **OLD, "step": None}),
    ],
)
def test_a_file_that_says_nothing_of_money_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DataError, match=r"is not a valid spend file.*delete it"):
        SpendFile(tmp_path, keeper(), start="s")
    (tmp_path / FILE).unlink()
    SpendFile(tmp_path, keeper()).close()


def test_a_file_that_cannot_be_made_again_stops_requests_and_no_other_file_is_written(tmp_path):
    """The number of its descriptor may be that of another file by then."""
    run = tmp_path / "run"
    budget = keeper(calls_per_run=100)
    SpendFile(run, budget)
    (run / FILE).unlink()
    run.rmdir()
    run.touch()
    with pytest.raises(JudgeFailure, match="could not be written to the spend file"):
        budget.reserve("judge", 1, 1)
    with (tmp_path / "other").open("wb", buffering=0) as other:
        other.write(b"kept")
        with pytest.raises(JudgeFailure, match="could not be written to the spend file"):
            budget.reserve("judge", 1, 1)
    assert (tmp_path / "other").read_bytes() == b"kept"
    assert budget.at_most == Spent()


def test_a_file_that_another_run_has_made_meanwhile_stops_requests_and_is_left_alone(tmp_path):
    first, second = keeper(calls_per_run=100), keeper(calls_per_run=100)
    spending = SpendFile(tmp_path, first)
    (tmp_path / FILE).unlink()
    SpendFile(tmp_path, second)
    second.reserve("judge", 1, 1)
    for _ in range(2):
        with pytest.raises(JudgeFailure, match="in use by another process"):
            first.reserve("judge", 1, 1)
    spending.save(at_once=True)
    assert first.at_most == Spent()
    assert read_spent(tmp_path / FILE) == second.at_most.in_run


def test_a_file_that_cannot_be_opened_is_said(tmp_path):
    (tmp_path / FILE).mkdir()
    with pytest.raises(SetupError, match="cannot be opened"):
        SpendFile(tmp_path, keeper())


def test_the_file_of_an_older_version_is_taken_over_from_the_runs_own_folder_only(tmp_path):
    run, shared = tmp_path / "run", tmp_path / "shared"
    for folder in (run / "judge" / "ledger", shared):
        folder.mkdir(parents=True)
        (folder / FILE).write_text(json.dumps(OLD))
    assert spend_path(run, 1, shared / FILE) == run / "judge" / FILE
    assert not (run / "judge" / FILE).exists()
    assert spend_path(run, 1, run / "judge" / "ledger" / FILE) == run / "judge" / FILE
    assert read_spent(run / "judge" / FILE).calls == 20
    assert not (run / "judge" / "ledger" / FILE).exists()  # or deleting the new one would not begin anew
    assert (shared / FILE).exists()


def config(cache: Path, **judge) -> ServiceConfig:
    endpoints = [{"url": "http://127.0.0.1:9/v1", "model": "judge"}]
    settings = {"endpoints": endpoints, "prices": {"judge": {"input": 1, "output": 1}}, "cache": str(cache)}
    return ServiceConfig(judge=read_config({**settings, **judge}))


def test_runs_on_one_cache_have_a_file_each_and_so_have_judges_of_one_run(tmp_path):
    cache = tmp_path / "cache.sqlite"

    async def spent_by(run: str, *configs: ServiceConfig) -> list[float]:
        token = run_folder.set(tmp_path / run)
        try:
            for one in configs:  # in the order of the config
                prepare_service(one)
            services = [shared_service(one) for one in reversed(configs)][::-1]
            before = [service.budget.spent.in_run.calls for service in services]
            for number, service in enumerate(services, 1):
                for _ in range(number):
                    service.budget.reserve("judge", 10, 10)
            return before
        finally:
            run_folder.reset(token)
            await close_local_services()

    small, large = (config(cache, budget={"calls_per_run": calls}) for calls in (10, 20))
    other = config(cache, budget={"calls_per_run": 10}, sampling={"max_tokens": 7})
    assert asyncio.run(spent_by("a", small, other)) == [0, 0]
    assert asyncio.run(spent_by("b", small)) == [0]
    assert asyncio.run(spent_by("a", large, other)) == [
        1,
        2,
    ]  # a larger budget has spent what the smaller had
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("spent*")) == [
        "a/judge/spent-2.json",
        "a/judge/spent.json",
        "b/judge/spent.json",
    ]
