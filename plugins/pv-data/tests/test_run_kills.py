"""A run that is killed again and again, at a server that fails, ends with the tables of an undisturbed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import pytest
from judge_server.script import Fault, Latency
from panel import JudgeServer, Script, by_mark, make_tables, settings

from pv_data.asking.settings import AHEAD
from pv_data.records import Aside, Judgment, Label, Proof
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.table import read_rows, write_part

CHILD = """
import sys
from pathlib import Path
from panel import settings
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.run.folder import fold
if __name__ == "__main__":
    run = Path({run!r})
    fold(run)
    config = settings(run, {url!r}, concurrency={at_once}, attempts={attempts}, workers={workers})
    run_local(Judging(run=run, config=config), {workers})
"""
ATTEMPTS = 10
# A question that fails as often: once in 300,000 runs of 2,000 questions.
FAULTS = (
    Fault(kind="status", status=500, probability=0.05),
    Fault(kind="reset", probability=0.03),
    Fault(kind="invalid_json", probability=0.03),
    Fault(kind="empty_choices", probability=0.02),
)
MUTE_AT, MUTE_EVERY = 6, 60
"""Proofs to which no answer is of use."""
AT_ONCE = 4
"""Requests on their way to each of two models."""


@pytest.mark.parametrize(
    ("proofs", "kills", "workers"),
    [
        pytest.param(60, 3, 1, marks=pytest.mark.slow),
        # Twenty kills take minutes; three show the same.
        pytest.param(500, 20, 1, marks=pytest.mark.paths),
        pytest.param(500, 20, 2, marks=pytest.mark.paths),
    ],
)
def test_a_killed_run_loses_nothing_and_pays_for_nothing_twice(proofs, kills, workers, tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for run in (calm, killed):
        make_tables(run, proofs, words="TORN")
        part = run / "proofs" / "00-00000.parquet"
        rows = list(read_rows(part.parent, Proof))
        for at in range(MUTE_AT, proofs, MUTE_EVERY):
            rows[at] = replace(rows[at], text=f"Proof number {at}: MUTE.")
        write_part(part, Proof, rows, group=64)
    mute = len(range(MUTE_AT, proofs, MUTE_EVERY))
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=calm, config=settings(calm, server.url, attempts=ATTEMPTS)), 1)
    script = Script(reply=by_mark, faults=FAULTS, latency=Latency(median_s=0.05, sigma=0.5))
    with JudgeServer(script) as server:
        code = CHILD.format(
            run=str(killed),
            url=server.url,
            workers=workers,
            at_once=AT_ONCE,
            attempts=ATTEMPTS,
        )
        program = tmp_path / "child.py"
        program.write_text(code)
        rng = random.Random(proofs)
        done = 0
        for _ in range(kills):
            child = subprocess.Popen([sys.executable, str(program)])
            wanted = len(server.chats()) + rng.randrange(1, max(2, 2 * proofs * 4 // kills))
            while child.poll() is None and len(server.chats()) < wanted:
                time.sleep(0.005)
            time.sleep(rng.random() * 0.05)
            child.send_signal(signal.SIGKILL)
            done += child.wait() == -signal.SIGKILL
            time.sleep(1.5 if workers > 1 else 0)  # processes whose parent is gone end within a second
        child = subprocess.run([sys.executable, str(program)], check=True, timeout=500)
        answers = sum(one["fault"] is None for one in server.chats())
    assert done > 0
    asides = [sorted(row.row for row in read_rows(run / "aside", Aside)) for run in (calm, killed)]
    assert asides[0] == asides[1]
    assert len(asides[0]) == mute
    for kind in (Label, Judgment):
        rows = Counter(comparable(row) for row in read_rows(killed / f"{kind.kind}s", kind))
        assert set(rows.values()) == {1}
        assert rows == Counter(comparable(row) for row in read_rows(calm / f"{kind.kind}s", kind))
    # What was on its way, to the disk too, when the run was killed had to be asked again, and nothing else.
    on_its_way = done * 2 * (AT_ONCE + workers + AT_ONCE // AHEAD)
    usable = (proofs - mute) * 4
    assert usable <= answers <= usable + mute * 4 * ATTEMPTS + on_its_way


def comparable(row: Label | Judgment) -> Label | Judgment:
    """A row without when it came, and for how much: answers that failed before it are counted in."""
    if isinstance(row, Judgment):
        return replace(
            row, origin=replace(row.origin, time="", usd=0.0, prompt_tokens=0, completion_tokens=0)
        )
    return row
