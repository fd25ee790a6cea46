"""A run that is done can grow: nothing is asked twice, and no row that is there changes."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from judge_server.script import Latency
from panel import JudgeServer, Script
from small_run import Run, by_text

from pv_data.asking.settings import AHEAD
from pv_data.records import Label
from pv_data.run import collect
from pv_data.run.collected import Collected, read_collected
from pv_data.run.manifest import FILE
from pv_data.table import read_rows

GENERATE = "generate: [{method: proof, model: judge}]\n"


@pytest.fixture
def server():
    with JudgeServer(Script(reply=by_text)) as one:
        yield one


def asked(server: JudgeServer) -> list[str]:
    return [json.dumps(one["body"]["messages"]) for one in server.chats()]


def test_a_limit_that_is_raised_adds_rows_and_changes_none(server, tmp_path):
    (tmp_path / "small").mkdir(), (tmp_path / "whole").mkdir()
    run, whole = (Run(tmp_path / name, server, more=GENERATE) for name in ("small", "whole"))
    before: dict[str, list] = {}
    for limit, problems in (("2", 2), ("4", 4), ("4", 4), ("null", 6)):
        code, said = run.command(f"sources.0.limit={limit}")
        assert code == 0, said
        now = run.tables()
        assert len(now["problems"]) == problems
        assert all(row in now[name] for name, rows in before.items() for row in rows)
        before = now
    assert len(asked(server)) == 6 + (6 + 6 * 4) * 2  # of each problem a proof; of each proof two votes
    assert whole.command()[0] == 0
    assert whole.tables() == before


@pytest.mark.paths
def test_a_run_that_is_killed_while_it_grows_loses_nothing_and_pays_for_nothing_twice(tmp_path):
    with JudgeServer(Script(reply=by_text, latency=Latency(median_s=0.05))) as server:
        (tmp_path / "grown").mkdir(), (tmp_path / "whole").mkdir()
        run, whole = (Run(tmp_path / name, server, problems=30, more=GENERATE) for name in ("grown", "whole"))
        code = "from pv_data.cli import app; app()"
        rng, kills = random.Random(0), 0
        assert run.command("sources.0.limit=2")[0] == 0
        for limit in (8, 8, 8, 16, 16, 16, 23, 23, 23, 30, 30, 30):
            command = [sys.executable, "-c", code, "run", str(run.config), f"sources.0.limit={limit}"]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wanted, deadline = len(server.chats()) + rng.randrange(2, 40), time.monotonic() + 60
            while child.poll() is None and len(server.chats()) < wanted and time.monotonic() < deadline:
                time.sleep(0.01)
            child.kill()
            kills += child.wait() == -signal.SIGKILL
        assert run.command()[0] == 0
        number = len(asked(server))
        assert whole.command()[0] == 0
    assert whole.tables() == run.tables()
    wanted = 30 + (30 + 30 * 4) * 2
    assert len(asked(server)) - number == wanted
    assert kills > 3
    assert wanted <= number <= wanted + kills * (4 + 1 + 4 // AHEAD)


def test_a_limit_that_is_lowered_is_refused_by_name(server, tmp_path):
    run = Run(tmp_path, server)
    assert run.command("sources.0.limit=4")[0] == 0
    code, said = run.command("sources.0.limit=3")
    assert code == 1
    assert "sources[0].limit was 4 and is 3. Change them back (a limit can only be raised" in said
    assert run.command("sources.0.limit=3", "--redo", "collect")[0] == 0
    assert len(run.tables()["problems"]) == 3
    assert len(asked(server)) == 4 * 4 * 2


@pytest.mark.parametrize("then", ["2", "5"])
def test_growth_that_is_cut_short_leaves_nothing_half_read(then, server, tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "PART_ROWS", 3)
    run = Run(tmp_path, server)
    assert run.command("sources.0.limit=2")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(Collected, "write", lambda *_: exec("raise KeyboardInterrupt"))
        assert run.command("sources.0.limit=4")[0] != 0
    code, said = run.command(f"sources.0.limit={then}")
    assert code == 0, said
    assert len(run.tables()["proofs"]) == 4 * int(then) == len(asked(server)) / 2


def test_a_folder_of_an_earlier_version_grows_too(server, tmp_path):
    run = Run(tmp_path, server)
    assert run.command("sources.0.limit=2")[0] == 0
    record = read_collected(run.folder, 0)
    (run.folder / "collected" / "00.json").write_text(json.dumps(record.counts))
    manifest = json.loads((run.folder / FILE).read_text())
    (run.folder / FILE).write_text(json.dumps({key: manifest[key] for key in ("version", "settings")}))
    assert run.command("sources.0.limit=1")[0] == 1
    assert run.command("sources.0.limit=3")[0] == 0
    assert len(run.tables()["problems"]) == 3


@pytest.mark.parametrize("what", ["gone", "other rows", "another file"])
def test_a_source_that_is_not_what_it_was_cannot_grow(what, server, tmp_path):
    run = Run(tmp_path, server)
    assert run.command("sources.0.limit=2")[0] == 0
    before = run.tables()
    if what == "gone":
        run.rows.rename(tmp_path / "moved.jsonl")
        expected = "does not exist"
    elif what == "other rows":  # of a source that draws them, or of another version of its reader
        record = read_collected(run.folder, 0)
        replace(record, counts=record.counts + record.counts).write(run.folder, 0)
        expected = "sources[0] (Mine) no longer gives the rows that the run has from it"
    else:
        run.rows.write_text(run.rows.read_text() * 2)
        expected = "sources[0].path was"
    code, said = run.command("sources.0.limit=3")
    assert (code, expected in said) == (1, True), said
    assert run.tables() == before


@pytest.mark.parametrize(
    ("setting", "stage", "more"),
    [("generate.0.samples=3", "generate", 6 * 2 * (1 + 2)), ("panel.0.votes=3", "judge", 6 * 5)],
)
def test_other_settings_that_are_raised_name_the_stage_to_do_again_and_it_asks_only_what_is_new(
    setting, stage, more, server, tmp_path
):
    server.script = Script(reply=lambda prompt, model: by_text(prompt + str(len(server.chats())), model))
    run = Run(tmp_path, server, more=GENERATE)
    assert run.command()[0] == 0
    before, number = run.tables(), len(asked(server))
    code, said = run.command(setting)
    assert (code, f"or add --redo {stage}:" in said) == (1, True), said
    code, said = run.command(setting, "--redo", stage)
    assert code == 0, said
    assert len(asked(server)) == number + more
    assert all(row in run.tables()[name] for name in ("proofs", "generated") for row in before[name])
    assert len(list(read_rows(run.folder / "labels", Label))) == len(before["labels"]) + (more == 36) * 12
