"""What `pv-rl watch` shows of a run, and what it does when the folder is hostile or half written."""

from __future__ import annotations

import io
import json
import os
import re
import time
from html.parser import HTMLParser

import pytest
from rich.console import Console

from pv_rl.errors import ConfigError, DataError
from pv_runs.watch import command
from pv_runs.watch.command import watch
from pv_runs.watch.screen import Screen, to_page
from pv_runs.watch.view import View

LOOP = "First. " + "so it is true " * 30
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07[bold red]m[/] <script>alert(1)</script> \u202e\ud800 "
    + "so <i>it</i> is \x1b[2J true " * 30
)


def make_run(folder, steps=3, state="finished", total=10, **data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".hydra").mkdir(exist_ok=True)
    (folder / ".hydra/config.yaml").write_text(f"trainer:\n  total_training_steps: {total}\n")
    (folder / "run.json").write_text(json.dumps({"state": state}))
    add_steps(folder, range(1, steps + 1), **data)
    return folder


def add_steps(folder, steps, name="metrics.jsonl", **data):
    with (folder / name).open("a") as file:
        for step in steps:
            values = {"pv_rl/reward/score": step / 10, "timing_s/step": 5.0, **data}
            file.write(json.dumps({"step": step, "data": values}) + "\n")


def add_rollouts(folder, step, *outputs):
    (folder / "rollouts").mkdir(exist_ok=True)
    lines = [json.dumps({"output": output, "score": 0.0}) for output in outputs]
    (folder / "rollouts" / f"{step}.jsonl").write_text("\n".join(lines) + "\n")


def text_of(frame, width=140, **options):
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(Screen(frame))
    return console.file.getvalue()


def printed(folder, **options):
    console = Console(file=io.StringIO(), width=140)
    watch(folder, console=console, **options)
    return console.file.getvalue()


def rows_of(frame):
    return {row.title: row for section in frame.sections for row in section.rows}


def test_one_frame_says_where_the_run_is(tmp_path):
    text = printed(make_run(tmp_path / "mine", steps=4, state="stopped"), once=True)
    assert "mine  stopped  step 4 of 10  5.00 s a step" in text
    assert re.search(r"reward +mean of responses +0\.400 +\+0\.300 ▁▃▆█", text)


def test_the_time_left_is_that_of_the_steps_that_are_missing(tmp_path):
    frame = View(make_run(tmp_path, steps=4, state="running")).look()
    assert frame.left == pytest.approx(6 * 5.0)


def test_a_pace_is_by_the_files_of_rollouts_where_steps_are_farther_apart_than_verl_says(tmp_path):
    make_run(tmp_path, steps=4, state="running")
    for step in (1, 2, 3, 4):
        add_rollouts(tmp_path, step, "fine")
        os.utime(tmp_path / f"rollouts/{step}.jsonl", (1000 + 8 * step, 1000 + 8 * step))
    assert View(tmp_path).look().seconds == pytest.approx(8.0)


def test_the_time_between_two_attempts_is_not_in_the_pace(tmp_path):
    make_run(tmp_path, steps=4, state="running")
    (tmp_path / "metrics-2.jsonl").write_text('{"step": 4, "data": {"val-core/a/right/acc/mean@1": 0.5}}\n')
    add_steps(tmp_path, [5, 6], name="metrics-2.jsonl", **{"timing_s/step": 7.0})
    for step in range(1, 7):  # a step takes 8 s, and the run was away for an hour after the fourth
        add_rollouts(tmp_path, step, "fine")
        when = 1000 + 8 * step + (3600 if step > 4 else 0)
        os.utime(tmp_path / f"rollouts/{step}.jsonl", (when, when))
    frame = View(tmp_path).look()
    assert (frame.seconds, frame.left) == (pytest.approx(8.0), pytest.approx(4 * 8.0))
    (tmp_path / "rollouts/6.jsonl").unlink()  # then verl's own time counts, that of the last attempt
    assert View(tmp_path).look().seconds == pytest.approx(7.0)


def test_what_a_resume_changed_is_shown_with_its_step(tmp_path):
    make_run(tmp_path, steps=4)
    add_steps(tmp_path, [5], name="metrics-2.jsonl")
    entries = [{"attempt": 1, "changed": {}}, {"attempt": 2, "changed": {"recipe.eta": ["0.6", "0.3"]}}]
    (tmp_path / "run.json").write_text(json.dumps({"state": "finished", "history": entries}))
    assert View(tmp_path).look().notes == ["recipe.eta: 0.6 then 0.3 from step 5"]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            '{"state": "done"}',
            "run.json has the state 'done'; pv-rl train writes running, finished, failed, stopped",
        ),
        ("{}", "run.json cannot be read"),
        ('{"attempts": 1}', "run.json has the state None"),
        ('{"state": ["running"]}', "run.json has the state ['running']"),
        ("{", "run.json cannot be read"),
        (None, "pv-rl train did not start this run, so it is not known whether it still runs"),
    ],
)
def test_a_state_that_is_none_is_told_as_it_is(tmp_path, text, note):
    make_run(tmp_path)
    (tmp_path / "run.json").unlink()
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    frame = View(tmp_path).look()
    assert frame.state == "unknown"
    assert frame.note.startswith(note)


@pytest.mark.parametrize(
    ("said", "shown"),
    [("finished", "ended"), ("failed", "failed"), ("stopped", "stopped"), ("running", "running")],
)
def test_the_state_is_that_of_run_json(tmp_path, said, shown):
    assert View(make_run(tmp_path, state=said)).look().state == shown


def test_a_run_that_says_it_is_running_and_writes_nothing_is_asked_after(tmp_path):
    view = View(make_run(tmp_path, state="running"))
    assert view.look(now=time.time() + 500).note == ""
    assert "may have been killed" in view.look(now=time.time() + 700).note


def test_an_error_is_shown_without_the_key_in_it(tmp_path):
    make_run(tmp_path, state="failed")
    error = "boom at https://me:hunter22@host with Bearer abcdefgh12345678 and sk-proj-abcdefghijklmnop1234"
    (tmp_path / "run.json").write_text(json.dumps({"state": "failed", "error": error}))
    frame = View(tmp_path).look()
    for shown in (text_of(frame), to_page(frame, refresh=None)):
        assert "boom at https://***@host" in shown
        assert not any(secret in shown for secret in ("hunter22", "abcdefgh12345678", "abcdefghijklmnop"))


def test_a_change_is_over_ten_steps(tmp_path):
    row = rows_of(View(make_run(tmp_path, steps=14)).look())["reward"]
    assert row.change == pytest.approx(1.0)  # 1.4 at step 14, 0.4 at step 4


def test_rules_that_hit_have_a_row_and_others_have_none(tmp_path):
    numbers = {"pv_rl/reward/rule_ngram_loop": 0.25, "pv_rl/reward/rule_chat_markup": 0.0}
    rows = rows_of(View(make_run(tmp_path, **numbers)).look())
    assert rows["ngram_loop"].last == 0.25
    assert "chat_markup" not in rows


def test_a_judge_that_is_asked_has_its_latency_failures_and_cost(tmp_path):
    judge = {"requests/sum": 8, "latency_p50_s": 1.5, "latency_p95_s": 4, "failed/sum": 2, "usd/sum": 0.5}
    make_run(tmp_path, steps=3, **{f"pv_rl/judge/{name}": value for name, value in judge.items()})
    frame = View(tmp_path).look()
    rows = rows_of(frame)
    assert frame.usd == pytest.approx(1.5)
    assert (rows["latency, median"].last, rows["latency, 95 %"].last) == (1.5, 4)
    assert (rows["questions failed"].last, rows["cost"].last) == (2, 0.5)


def test_a_judge_that_is_never_asked_has_no_section(tmp_path):
    make_run(tmp_path, **{"pv_rl/judge/requests/sum": 0.0, "pv_rl/judge/exposed_wait_s/sum": 0.001})
    assert "judge" not in [section.title for section in View(tmp_path).look().sections]


def test_a_value_of_an_earlier_step_says_of_which(tmp_path):
    make_run(tmp_path, steps=2, **{"val-core/lab/right/acc/mean@1": 0.5})
    add_steps(tmp_path, [3])
    assert rows_of(View(tmp_path).look())["held out, right proofs"].unit == "accuracy, step 2"


def test_alarms_resumes_and_validations_are_marked_on_the_page(tmp_path):
    make_run(tmp_path, steps=6)
    add_steps(tmp_path, range(5, 8), "metrics-2.jsonl", **{"val-core/lab/right/acc/mean@1": 0.5})
    add_steps(tmp_path, range(8, 11), "metrics-3.jsonl")
    (tmp_path / "sentinel.jsonl").write_text(
        "".join(json.dumps({"sign": "cut_off", "step": step, "message": "x"}) + "\n" for step in range(1, 8))
    )
    frame = View(tmp_path).look()
    assert (frame.resumed, frame.validated) == ([5, 8], [5, 6, 7])
    assert (frame.alarmed, len(frame.alarms)) == ([7, 6, 5, 4, 3, 2, 1], 5)
    page = to_page(frame, refresh=None)
    assert '<path class="resume" d="M110 0V26M176 0V26"/>' in page  # steps 5 and 8 of 10, 220 wide
    assert page.count('<path class="alarm"') == page.count("<svg") == 3
    assert "<span>1.00</span><span>0.100</span>" in page  # the greatest and the least reward


def test_metrics_of_ones_own_are_shown_where_a_pattern_asks_for_them(tmp_path):
    make_run(tmp_path, **{"my/a": 1.5, "my/b": 2.0, "other": 3.0, "my/text": "x"})
    assert not {"my/a", "other"} & set(rows_of(View(tmp_path).look()))
    assert {"my/a", "my/b"} == {row.title for row in View(tmp_path, ["my/*"]).look().sections[-1].rows}
    assert re.search(r"my/b +2.00", printed(tmp_path, once=True, show=["my/b"]))


def test_learning_rate_clipping_throughput_and_memory_are_shown(tmp_path):
    numbers = {"actor/lr": 1e-6, "actor/pg_clipfrac": 0.002, "perf/throughput": 4000.0}
    rows = rows_of(View(make_run(tmp_path, **numbers, **{"perf/max_memory_allocated_gb": 61.5})).look())
    shown = [rows[name].last for name in ("learning rate", "clipped", "throughput", "GPU memory")]
    assert shown == [1e-6, 0.002, 4000.0, 61.5]


def test_a_malformed_trace_is_shown_with_its_rule_and_the_place(tmp_path):
    make_run(tmp_path)
    add_rollouts(tmp_path, 3, "All of it follows from step 1.\n### True", LOOP)
    (trace,) = View(tmp_path).look().traces
    assert trace.step == 3
    assert "loop" in trace.reason
    assert any(kind == "mark" and "so it is true so it is true" in text for text, kind in trace.pieces)


def test_without_colours_the_place_is_in_brackets(tmp_path):
    make_run(tmp_path)
    add_rollouts(tmp_path, 3, LOOP)
    assert re.search(r"\[\[[^\[]*so it is true", text_of(View(tmp_path).look(), color_system=None))


def test_nothing_of_a_hostile_trace_reaches_the_terminal_or_runs_in_the_page(tmp_path):
    make_run(tmp_path)
    add_rollouts(tmp_path, 3, HOSTILE)
    (tmp_path / "sentinel.jsonl").write_text(
        json.dumps({"sign": "<b>[red]\x1b[1m", "step": 2, "message": "</p><script>alert(2)</script>\x1b[2J"})
        + "\n"
    )
    frame = View(tmp_path).look()
    text = text_of(frame, force_terminal=True, color_system="truecolor")
    assert "[bold red]m[/]" in text  # shown as it is, and obeyed by nobody
    codes = re.findall(r"\x1b[^m]*m?", text)
    assert all(re.fullmatch(r"\x1b\[[0-9;]*m", code) for code in codes)
    assert not set("\x07\u202e\ud800") & set(text)
    page = to_page(frame, refresh=2)
    tags = tags_of(page)
    assert not {"i", "b"} & set(tags)
    assert tags.count("script") == 1  # of the page itself, allowed by its hash
    assert "mark" in tags  # of the page itself, so that the line above can fail
    assert "alert(1)" in page
    assert not set("\x1b\x07\u202e\ud800") & set(page)


def tags_of(page):
    tags = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)
            assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    Parser().feed(page)
    return tags


def test_a_key_that_is_no_name_of_a_rule_has_no_row(tmp_path):
    folder = make_run(tmp_path / "[red]<i>x", **{"pv_rl/reward/rule_<img src=x onerror=alert(1)>": 0.5})
    frame = View(folder).look()
    assert "[red]<i>x" in text_of(frame)
    assert not any("img" in title for title in rows_of(frame))


@pytest.mark.parametrize(
    "value", [None, "12", True, [], {}, 10**400, float("nan"), float("inf"), -1e308, 1e308]
)
def test_a_value_that_is_no_number_breaks_nothing(tmp_path, value):
    make_run(tmp_path, steps=2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        for step, given in ((3, value), (4, 0.5), (5, value)):
            file.write(
                json.dumps({"step": step, "data": {"pv_rl/reward/score": given, "timing_s/step": given}})
                + "\n"
            )
    frame = View(tmp_path).look()
    assert frame.step == 5
    assert "step 5 of 10" in text_of(frame)
    assert "nan" not in text_of(frame)
    assert "<svg" in to_page(frame, refresh=None)
    assert ",nan" not in to_page(frame, refresh=None)


def test_lines_that_are_damaged_or_too_long_are_counted_and_left_out(tmp_path):
    make_run(tmp_path, steps=2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(
            "[" * 100_000 + "\n" + '{"step": 3, "data": {"x": "' + "y" * 10_000_000 + '"}}\n' + "\x00\xff\n"
        )
    add_steps(tmp_path, [4])
    frame = View(tmp_path).look()
    assert frame.step == 4
    assert frame.notes == ["left out 3 lines of metrics that verl did not write"]


def test_a_config_that_cannot_be_read_is_a_note(tmp_path):
    make_run(tmp_path)
    (tmp_path / ".hydra/config.yaml").write_text("a: [")
    (tmp_path / "run.json").write_text("{")
    frame = View(tmp_path).look()
    assert (frame.step, frame.state, len(frame.notes)) == (3, "unknown", 2)


def test_the_last_alarms_are_shown_latest_first(tmp_path):
    make_run(tmp_path)
    assert View(tmp_path).look().alarms is None
    path = tmp_path / "sentinel.jsonl"
    path.write_text("")
    assert "sentinel: no alarm" in text_of(View(tmp_path).look())
    path.write_text(
        '{"sign": "veto_rate", "step": 2, "value": 0.2, "expected": 0.02, "message": "rising"}\nnot JSON\n[]\n'
        '{"sign": "cut_off", "step": 3, "value": 0.4, "expected": 0.1}\n{"sign": "half'
    )
    alarms = View(tmp_path).look().alarms
    assert [(one.sign, one.step, one.message) for one in alarms] == [
        ("cut_off", 3, "0.4, where 0.1 was to be expected"),
        ("veto_rate", 2, "rising"),
    ]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("not json\n", "sentinel.jsonl: 1 line cannot be read, alarms may be missing"),
        ('{"event": "rollback"}\n[]\n3\n', "sentinel.jsonl: 2 lines cannot be read, alarms may be missing"),
        (None, "sentinel.jsonl cannot be read, its alarms are not shown"),
    ],
)
def test_alarms_that_cannot_be_read_are_not_taken_for_none(tmp_path, text, note):
    make_run(tmp_path)
    path = tmp_path / "sentinel.jsonl"
    path.mkdir() if text is None else path.write_text(text)
    shown = text_of(View(tmp_path).look())
    assert note in shown
    assert "no alarm" not in shown


def test_a_sentinel_that_only_acted_has_no_alarm(tmp_path):
    make_run(tmp_path)
    (tmp_path / "sentinel.jsonl").write_text('{"event": "rollback", "step": 3, "message": "back"}\n')
    assert "sentinel: no alarm" in text_of(View(tmp_path).look())


def test_a_folder_that_is_no_run_says_what_was_looked_for_and_what_is_there(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(DataError, match=r"Looked for: metrics\.jsonl, run\.json.*There is: notes\.txt"):
        watch(tmp_path, once=True)
    with pytest.raises(DataError, match="is not a folder"):
        watch(tmp_path / "nothing", once=True)


def test_a_sweep_names_its_runs(tmp_path):
    for name in "01":
        make_run(tmp_path / name)
    with pytest.raises(DataError, match="holds 2 runs; give the folder of one of them: 0, 1"):
        watch(tmp_path, once=True)


def test_an_interval_of_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--interval is 0; give a number of seconds from 0\.2"):
        watch(make_run(tmp_path), interval=0)


def test_output_that_is_no_terminal_gets_a_line_a_step_and_the_end(tmp_path):
    lines = printed(make_run(tmp_path / "mine", steps=2)).splitlines()
    assert lines == [
        "step 1 of 10  reward 0.100  seconds 5.00",
        "step 2 of 10  reward 0.200  seconds 5.00",
        "mine: ended",
    ]


def test_steps_and_alarms_that_come_later_are_said_once(tmp_path, monkeypatch):
    make_run(tmp_path, steps=2, state="running")
    alarms = tmp_path / "sentinel.jsonl"
    alarms.write_text('{"sign": "veto_rate", "step": 1, "message": "rising"}\n')

    def a_step_later(_):
        add_steps(tmp_path, [3])
        with alarms.open("a") as file:
            file.write('{"sign": "cut_off", "step": 3, "message": "[b]longer"}\n')
        (tmp_path / "run.json").write_text('{"state": "finished"}')

    monkeypatch.setattr(command.time, "sleep", a_step_later)
    lines = printed(tmp_path).splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("step")] == [
        f"step {step} of 10" for step in (1, 2, 3)
    ]
    assert [line for line in lines if line.startswith("alarm")] == [
        "alarm  step 1  veto_rate  rising",
        "alarm  step 3  cut_off  [b]longer",
    ]


def test_a_folder_that_is_away_for_a_while_ends_no_view(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", steps=1, state="running")
    pages = []

    def move(_):
        pages.append((tmp_path / "page.html").read_text())
        if len(pages) == 1:
            run.rename(tmp_path / "away")
        else:
            (tmp_path / "away").rename(run)
            (run / "run.json").write_text('{"state": "finished"}')

    monkeypatch.setattr(command.time, "sleep", move)
    assert printed(run, html=tmp_path / "page.html").endswith("run: ended\n")
    assert ["cannot be read now" in page for page in pages] == [False, True]


@pytest.mark.parametrize("terminal", [True, False])
def test_ctrl_c_leaves_quietly_and_the_page_says_that_nobody_writes_it(tmp_path, monkeypatch, terminal):
    make_run(tmp_path, state="running")
    refreshes = []

    def interrupt(_):
        refreshes.append('http-equiv="refresh"' in (tmp_path / "watch.html").read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", interrupt)
    watch(tmp_path, html=True, console=Console(file=io.StringIO(), force_terminal=terminal, width=100))
    page = (tmp_path / "watch.html").read_text()
    assert refreshes == [True]
    assert 'http-equiv="refresh"' not in page
    assert "not kept up to date" in page


def test_the_page_is_written_whole_beside_the_run_or_where_it_is_wanted(tmp_path):
    run = make_run(tmp_path / "run")
    before = {path.name for path in run.iterdir()}
    printed(run, once=True, html=True)
    assert {path.name for path in run.iterdir()} - before == {"watch.html"}
    printed(run, once=True, html=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")
    with pytest.raises(ConfigError, match="there is no folder"):
        watch(run, once=True, html=tmp_path / "no" / "page.html")


@pytest.mark.parametrize(("width", "height"), [(200, 60), (120, 50), (100, 40), (80, 24), (60, 20)])
def test_a_live_frame_fits_the_terminal(tmp_path, width, height):
    names = ("verdict_missing", "vetoed", "acc_label_true", "acc_label_false", "rule_ngram_loop")
    make_run(tmp_path, steps=30, **{f"pv_rl/reward/{name}": 0.25 for name in names}, **{"pv_rl/eta": 0.6})
    add_rollouts(tmp_path, 30, *(f"{number} {LOOP}" for number in range(4)))
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True)
    console.print(Screen(View(tmp_path).look(), fit=True))
    lines = console.file.getvalue().splitlines()
    assert len(lines) < height
    assert any("reward" in line for line in lines)


def test_a_terminal_without_blocks_gets_plain_ones(tmp_path):
    frame = View(make_run(tmp_path)).look()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    Console(file=stream, width=120).print(Screen(frame))
    stream.flush()
    assert b"_~#" in stream.buffer.getvalue() or b"_-#" in stream.buffer.getvalue()
