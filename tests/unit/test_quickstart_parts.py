"""The quick start's parts: its log reader, its display, its figure, and how it ends a process tree."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from rich.console import Console

from pv_rl.quickstart import process
from pv_rl.quickstart.curves import HELD_OUT, follow
from pv_rl.quickstart.display import Display, before_and_after
from pv_rl.quickstart.figure import draw
from pv_rl.quickstart.process import process_tree


def line(step: int, right: float | None = None, wrong: float | None = None, **data: float) -> bytes:
    held_out = {} if right is None else {HELD_OUT["right"]: right, HELD_OUT["wrong"]: wrong}
    return json.dumps({"step": step, "data": {**held_out, **data}}).encode() + b"\n"


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        line(0, 0.9, 0.3)
        + line(1, **{"critic/score/mean": 0.6, "response_length/mean": 20.0, "timing_s/step": 3.0})
        + line(
            2, 0.85, 0.65, **{"critic/score/mean": 0.7, "response_length/mean": 30.0, "timing_s/step": 3.0}
        )
    )
    reader = follow(path)
    return [next(reader) for _ in range(3)]


def test_points_are_read_as_verl_writes_them(points):
    assert [(p.step, p.reward, p.length, p.balanced) for p in points] == [
        (0, None, None, pytest.approx(0.6)),
        (1, 0.6, 20.0, None),
        (2, 0.7, 30.0, pytest.approx(0.75)),
    ]


def test_a_line_that_is_not_written_to_its_end_is_waited_for(tmp_path):
    path = tmp_path / "metrics.jsonl"
    reader = follow(path)
    assert next(reader) is None
    whole = line(1, 0.5, 0.25)
    path.write_bytes(whole[:20])
    assert next(reader) is None
    with path.open("ab") as file:
        file.write(whole[20:])
    point = next(reader)
    assert point is not None
    assert point.balanced == 0.375
    assert next(reader) is None


def test_the_table_shows_both_classes_before_and_after(points):
    console = Console(file=io.StringIO(), width=100)
    console.print(before_and_after(points, "balanced"))
    rows = [row.split() for row in console.file.getvalue().splitlines()]  # pyright: ignore
    assert any("right" in r and r[-3:] == ["0.90", "│", "0.85"] for r in (row[:-1] for row in rows if row))
    assert any("wrong" in r and r[-3:] == ["0.30", "│", "0.65"] for r in (row[:-1] for row in rows if row))
    assert any("balanced" in r and r[-3:] == ["0.60", "│", "0.75"] for r in (row[:-1] for row in rows if row))


def test_the_display_prints_lines_where_there_is_no_terminal(points):
    console = Console(file=io.StringIO(), width=200)
    with Display(console, steps=2) as display:
        for point in points:
            display.add(point)
    output = console.file.getvalue()  # pyright: ignore
    assert "step 2/2" in output
    assert "held-out 0.75 at step 2 (right proofs 0.85, wrong proofs 0.65)" in output


def test_the_figure_is_a_png_and_nothing_half_written_stays(points, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'pv-rl[quickstart]'")
    draw(points, "balanced", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curves.png", "metrics.jsonl"]


DAEMON = """
import os, subprocess, sys, time
detached = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
orphan = "import os, time\\nif os.fork() == 0:\\n    os.setsid(); time.sleep(600)"
subprocess.run([sys.executable, "-c", orphan])
print("ready", flush=True)
time.sleep({sleep})
"""


def survivors(log) -> list[psutil.Process]:
    mark = str(log.resolve())
    found = []
    for one in psutil.process_iter():
        try:
            if mark in one.environ().get("PV_RL_PROCESS_TREE", ""):
                found.append(one)
        except psutil.Error:
            pass
    return found


def wait_for(log, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("ending", ["interrupt", "error", "normal"])
def test_a_process_tree_is_gone_however_the_block_ends(tmp_path, monkeypatch, ending):
    """With a child in a session of its own and an orphan whose parent is dead, as Ray's daemons are."""
    monkeypatch.setattr(process, "PATIENCE", 1.0)
    log = tmp_path / "log"
    command = [sys.executable, "-c", DAEMON.format(sleep=600 if ending != "normal" else 0)]
    raised = {"interrupt": KeyboardInterrupt, "error": ValueError, "normal": None}[ending]
    expected = pytest.raises(raised) if raised else contextlib.nullcontext()
    with expected, process_tree(command, env=os.environ, cwd=tmp_path, log=log) as child:
        wait_for(log, "ready")
        assert len(survivors(log)) >= 2
        if raised:
            raise raised
        assert child.wait(30) == 0
    assert survivors(log) == []


def test_sigterm_ends_the_block_like_ctrl_c(tmp_path):
    code = (
        "import os, signal\nfrom pv_rl.quickstart.process import interruptible\n"
        "try:\n    with interruptible():\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted"
    assert done.returncode != -signal.SIGTERM
