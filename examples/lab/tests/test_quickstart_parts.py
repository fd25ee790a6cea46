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
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from threading import Barrier

import psutil
import pytest
from rich.console import Console

from pv_judge import processes
from pv_judge.override import override
from pv_judge.pages.blocks import Table
from pv_judge.pages.terminal import print_blocks
from pv_judge.processes import process_tree
from pv_lab.commands import free_folder, quickstart
from pv_lab.quickstart import run
from pv_lab.quickstart.curves import HELD_OUT, follow
from pv_lab.quickstart.display import Display, before_and_after
from pv_lab.quickstart.figure import draw
from pv_lab.quickstart.run import HEADING, next_lines
from pv_lab.quickstart.settings import CONFIG_NAME, Settings, environment
from pv_lab.quickstart.start import follow_stages, weights_of_traces
from pv_rl.errors import SetupError
from pv_runs.recipes.compose import CONFIG_MODULE
from pv_runs.report.runs import read_run
from pv_runs.train.attempt import shell_script


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
    print_blocks(before_and_after(points, "balanced"), console)
    rows = [row.split() for row in console.file.getvalue().splitlines()]  # pyright: ignore
    assert any("right" in r and r[-2:] == ["0.90", "0.85"] for r in rows)
    assert any("wrong" in r and r[-2:] == ["0.30", "0.65"] for r in rows)
    assert any("balanced" in r and r[-2:] == ["0.60", "0.75"] for r in rows)


def test_shares_of_traces_are_those_of_the_formulas():
    """Lengths 5, 25, 34 and 45 are 109 tokens: dapo gives 5/109, and balanced:0.5 the mean of that and 1/4."""
    table = next(block for block in weights_of_traces("balanced:0.5") if isinstance(block, Table))
    assert [column.title for column in table.columns[1:]] == (
        ["reward", "tokens", "grpo", "dapo", "balanced", "balanced:0.5"]
    )
    assert [row[1:] for row in table.rows] == [
        ["0", "5", "25%", "5%", "17%", "15%"],
        ["1", "25", "25%", "23%", "24%", "24%"],
        ["0", "34", "25%", "31%", "27%", "28%"],
        ["1", "45", "25%", "41%", "32%", "33%"],
    ]


@pytest.mark.parametrize(
    ("mode", "columns"),
    [
        ("token-mean", 6),
        ("balanced", 6),
        ("ba", 7),
        ("dr_grpo:128", 7),
        ("vl_norm:1:128", 7),
        ("dapo@batch", 7),
    ],
)
def test_shares_of_any_mode_add_up(mode, columns):
    """verl's own modes have none."""
    table = next(block for block in weights_of_traces(mode) if isinstance(block, Table))
    assert len(table.columns) == columns
    assert sum(int(row[-1].rstrip("%")) for row in table.rows) in range(98, 103)


def test_stages_are_read_from_the_log_as_it_grows(tmp_path):
    log = tmp_path / "verl.log"
    log.write_text("noise\nINFO Started a local Ray instance.\nStarted a local Ray instance.\n")
    stages = follow_stages(log)
    assert [next(stages), next(stages)] == ["Ray runs; starting verl's trainer", None]
    with log.open("a") as file:
        file.write("(pid=1) actor and ref model engine init")
        file.flush()
        assert next(stages) is None
        file.write("ialized\n")
    assert next(stages) == "starting the rollout server"


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        (
            {"out": Path("runs/quickstart-balanced-seed-0")},
            [
                "weights --rollouts runs/quickstart-balanced-seed-0/rollouts --step 1",
                "quickstart --mode dapo --seed 0 --steps 14",
                "report runs",
            ],
        ),
        (
            {"out": Path("/a b"), "mode": "dapo", "trainer": "trl", "seed": 2},
            [
                "weights --rollouts '/a b'/rollouts --step 1",
                "quickstart --mode balanced --seed 2 --steps 14 --trainer trl",
                "report '/a b'",
            ],
        ),
    ],
)
def test_what_to_try_next_can_be_typed(settings, lines):
    shown = [line.split("  #")[0].split("pv-rl ", 1)[1] for line in next_lines(Settings(**settings))]
    assert shown == lines


def test_the_display_prints_lines_where_there_is_no_terminal(points):
    console = Console(file=io.StringIO(), width=200)
    with Display(console, steps=2) as display:
        for point in points:
            display.add(point)
    output = console.file.getvalue()  # pyright: ignore
    assert "step 2/2" in output
    assert "held-out balanced accuracy 0.75 at step 2 (right proofs 0.85, wrong proofs 0.65)" in output


def test_the_figure_is_a_png_and_nothing_half_written_stays(points, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install ./plugins/pv-cpu")
    draw(points, "balanced", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curves.png", "metrics.jsonl"]


def test_a_child_heeds_an_interrupt_even_if_we_were_started_in_the_background(tmp_path):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom pv_judge.processes import process_tree\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "ask = 'import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)'\n"
        "with process_tree([sys.executable, '-c', ask], env=os.environ, cwd='.', log=Path('log')) as child:\n"
        "    child.wait(30)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=True)
    assert (tmp_path / "log").read_text().strip() == "True"


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
    monkeypatch.setattr(processes, "PATIENCE", 1.0)
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


def test_no_process_that_we_start_reports_usage_unless_the_user_wants_it(tmp_path):
    code = "import os; print(*(os.environ.get(name) for name in os.environ['NAMES'].split()))"
    names = "RAY_USAGE_STATS_ENABLED VLLM_NO_USAGE_STATS HF_HUB_DISABLE_TELEMETRY DO_NOT_TRACK"
    env = {"NAMES": names, "HF_HUB_DISABLE_TELEMETRY": "0"}
    with process_tree([sys.executable, "-c", code], env=env, cwd=tmp_path, log=tmp_path / "log") as child:
        assert child.wait(30) == 0
    assert (tmp_path / "log").read_text() == "0 1 0 1\n"


def test_a_further_ctrl_c_kills_at_once_and_leaves_nothing(tmp_path):
    """With a child that ignores the first."""
    code = (
        "import os, signal, subprocess, sys, time\nfrom pathlib import Path\n"
        "from pv_judge.processes import process_tree\n"
        "stubborn = 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True);"
        " time.sleep(600)'\n"
        "log = Path('log')\n"
        "with process_tree([sys.executable, '-c', stubborn], env=os.environ, cwd='.', log=log):\n"
        "    while not log.read_text():\n        time.sleep(0.05)\n"
        "    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 - CI may run us with it ignored
    run = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True, preexec_fn=heed
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    time.sleep(1)
    assert run.poll() is None  # still waiting for the child
    run.send_signal(signal.SIGINT)
    run.wait(5)
    assert survivors(tmp_path / "log") == []


def test_sigterm_ends_the_block_like_ctrl_c(tmp_path):
    code = (
        "import os, signal\nfrom pv_judge.processes import interruptible\n"
        "try:\n    with interruptible():\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted"
    assert done.returncode != -signal.SIGTERM


@pytest.mark.parametrize(
    "path", ["plain", "a=b,c", "it's", "[x]{y}", "${oc.env:HOME}", "two words", "é%(x)#~!"]
)
def test_a_path_reaches_the_config_as_it_is(path):
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    from hydra import compose, initialize_config_module

    with initialize_config_module(version_base=None, config_module=CONFIG_MODULE):
        config = compose(CONFIG_NAME, overrides=[override("data.train_files", f"/tmp/{path}/x.parquet")])
    assert config.data.train_files == f"/tmp/{path}/x.parquet"


def test_the_script_of_a_run_carries_its_environment(tmp_path):
    out = tmp_path / "it's here"
    out.mkdir()
    text = shell_script(
        [sys.executable, "-c", "import os; print(os.environ['VERL_PLATFORM'])"],
        environment(out / "again.jsonl"),
        HEADING,
    )
    (out / "command.sh").write_text(text)
    done = subprocess.run(["sh", str(out / "command.sh")], capture_output=True, text=True)
    assert done.stdout == "cpu\n", done.stderr


def test_the_default_folder_is_the_next_free_one(tmp_path):
    base = tmp_path / "run"
    assert free_folder(base) == base
    base.mkdir()
    (tmp_path / "run-2").mkdir()
    assert free_folder(base) == tmp_path / "run-3"


def test_the_command_has_the_defaults_of_the_settings(tmp_path):
    given = {name: one.default for name, one in signature(quickstart).parameters.items() if name != "out"}
    assert Settings(out=tmp_path, **given) == Settings(out=tmp_path)


def test_of_two_runs_that_begin_at_once_one_gets_the_folder(tmp_path):
    def begin(number: int) -> str:
        together.wait()
        try:
            run._make_folder(tmp_path / f"{number % 20}")
        except SetupError as error:
            return "refused" if "another quick start" in str(error) or "is not empty" in str(error) else "?"
        return "begun"

    together = Barrier(40)
    with ThreadPoolExecutor(40) as pool:
        assert sorted(pool.map(begin, range(40))) == ["begun"] * 20 + ["refused"] * 20


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        ("failed", "ValueError: no such model", "raise ValueError('no such model')"),
        (
            "stopped",
            "ended by a signal",
            "import os, signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()",
        ),
    ],
)
def test_a_run_that_does_not_end_well_records_why(tmp_path, monkeypatch, state, error, code):
    """With a stand-in for the trainer. `test_quickstart.py` has a run that ends well."""
    monkeypatch.setattr(run, "trainer_command", lambda *_: [sys.executable, "-c", code])
    settings = Settings(out=tmp_path / "run", steps=1, trainer="trl")
    with pytest.raises((SetupError, KeyboardInterrupt)):
        run.run_quickstart(settings, Console(file=io.StringIO()))
    read = read_run(settings.out, "run")
    assert read.state == state
    assert (read.error or "").startswith(error)
    assert "pv_rl" in read.versions
