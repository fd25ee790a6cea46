"""`pv-rl watch --metrics`: metrics files of other trainers, while they grow and when they are damaged."""

from __future__ import annotations

import io
import json
import math
import random

import pytest
from rich.console import Console
from typer.testing import CliRunner
from validations import validation

from pv_rl.errors import ConfigError, DataError
from pv_runs.commands import app
from pv_runs.sentinel import SentinelConfig, Watcher
from pv_runs.watch.command import watch
from pv_runs.watch.foreign import FileView, read_map
from pv_runs.watch.metrics_file import open_metrics
from pv_runs.watch.screen import Screen, to_page


def view(path, **options):
    return FileView(path, make_watcher=lambda: Watcher(SentinelConfig(responses=128)), **options)


AXIS = "Relative Time (Process)"


def rows_of(frame):
    return {row.title: row for section in frame.sections for row in section.rows}


def write(path, *lines, mode="w"):
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return path


def values(path):
    return [(step, numbers) for step, numbers in open_metrics(path).look()]


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("verl.jsonl", ['{"step": 3, "data": {"actor/lr": 0.5}}'], [(3, {"actor/lr": 0.5})]),
        ("trl.jsonl", ['{"loss": 0.5, "step": 3, "note": "x", "on": true}'], [(3, {"loss": 0.5})]),
        ("wandb.jsonl", ['{"_step": 3, "a": {"b": 1, "c": {"d": 2}}}'], [(3, {"a/b": 1, "a/c/d": 2})]),
        ("none.jsonl", ['{"a": 1}', '{"a": 2}'], [(None, {"a": 1}), (None, {"a": 2})]),
        (
            "odd.jsonl",
            ['{"step": -1, "a": NaN}', '{"step": 1.0, "a": null}'],
            [(None, {"a": math.nan}), (1, {})],
        ),
        ("plain.csv", ["step,a,b", "1,0.5,", "2,nan,7"], [(1, {"a": 0.5}), (2, {"a": math.nan, "b": 7})]),
        ("bom.csv", ["\ufeffStep;a", "1;0,5", "2;1e-3\r"], [(1, {"a": 0.5}), (2, {"a": 0.001})]),
        ("time.csv", ["Relative Time (Process),one - kl", "12.5,0.1"], [(None, {AXIS: 12.5, "kl": 0.1})]),
        ("excel.csv", ["sep=;", "step;a", "1;-1.234,5", "2;1,234.5"], [(1, {"a": -1234.5}), (2, {})]),
        ("text.jsonl", ['{"step": 3, "a": "0.5", "b": "NaN", "c": "x"}'], [(3, {"a": 0.5, "b": math.nan})]),
        ("rows.json", ['[{"step": 3, "a": 0.5}]'], [(3, {"a": 0.5})]),
        ("tab.tsv", ["global_step\ta", "1\t2"], [(1, {"a": 2})]),
        ("quoted.csv", ['"step","a,b"', '"1","2"'], [(1, {"a,b": 2})]),
        (
            "export.csv",
            [
                '"Step","run 1 - train/kl","run 1 - train/kl__MIN","run 1 - train/kl__MAX"',
                '"4","0.1","0","1"',
            ],
            [(4, {"train/kl": 0.1})],
        ),
    ],
)
def test_rows_are_read_in_the_formats_that_people_have(tmp_path, name, lines, expected):
    found = values(write(tmp_path / name, *lines))
    assert [step for step, _ in found] == [step for step, _ in expected]
    for (_, numbers), (_, wanted) in zip(found, expected, strict=True):
        assert numbers == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"1,2\n3,4\n", "has no names of columns"),
        ("a.csv", b"Step,one - kl,two - kl\n1,2,3\n", r"contains 2 runs \(one, two\); export one run"),
        ("a.csv", "step,a\n".encode("utf-16"), "UTF-16"),
        ("a.txt", b"hello\n", "expected JSON lines"),
        ("a.jsonl", b"[1]\n", "expected JSON lines"),
        ("a.json", b'{"step": 1}\n{"step": 2}\n', "not a trainer_state.json"),
    ],
)
def test_what_is_no_metrics_file_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        view(tmp_path / name).look()


def test_a_folder_without_event_files_and_a_pipe_are_refused(tmp_path):
    with pytest.raises(DataError, match="no TensorBoard event file"):
        view(tmp_path)
    import os

    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(OSError, match="no regular file"):
        view(tmp_path / "pipe.jsonl")


def test_a_growing_file_is_read_line_by_line_and_its_half_line_waits(tmp_path):
    path = write(tmp_path / "log.jsonl", {"step": 1, "a": 1})
    one = view(path)
    with path.open("a") as file:
        file.write('{"step": 2, "a"')
    assert one.look().step == 1
    with path.open("a") as file:
        file.write(': 2}\nnot JSON\n[]\n{"step": 3, "a": 4}\n')
    frame = one.look()
    assert (frame.step, list(rows_of(frame)["a"].values)) == (3, [1, 2, 4])
    assert frame.notes == ["left out 2 lines that could not be read"]
    write(path, {"step": 1, "a": 7})  # written anew
    assert list(rows_of(one.look())["a"].values) == [7]


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", '{"step": 1, "a": 7}'), ("a.csv", "step,a\n1,7")])
def test_a_last_line_without_its_end_counts_in_a_file_that_is_complete(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert view(tmp_path / name).look().step is None
    assert rows_of(view(tmp_path / name, final=True).look())["a"].last == 7


def test_a_trainer_state_that_is_written_anew_continues(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [{"step": 1, "a": 1}]}')
    one = view(path)
    assert one.look().step == 1
    path.write_text('{"log_hist')
    assert one.look().step == 1
    path.write_text('{"log_history": [{"step": 1, "a": 1}, {"step": 2, "a": 2}]}')
    frame = one.look()
    assert (frame.step, frame.notes) == (2, [])


def test_steps_that_repeat_or_come_late_are_put_in_order_and_the_last_row_counts(tmp_path):
    lines = [{"step": step, "a": value} for value, step in enumerate([1, 3, 2, 3, 3, 5])]
    frame = view(write(tmp_path / "log.jsonl", *lines)).look()
    row = rows_of(frame)["a"]
    assert (list(row.steps), list(row.values)) == ([1, 2, 3, 5], [0, 2, 4, 5])
    assert "steps went back 1 time" in frame.notes[0]


def collapsing(steps=120):
    rng = random.Random(0)
    for step in range(1, steps + 1):
        entropy = 0.6 * 0.85 ** max(0, step - 60) * math.exp(rng.gauss(0, 0.05))
        yield {"step": step, "policy_entropy": entropy, "reward": 0.5, "mine": step}


def test_a_metric_with_a_clock_of_its_own_is_no_resume(tmp_path):
    lines = []
    for row in collapsing():
        lines.append({"step": row["step"], "entropy": row["policy_entropy"]})
        lines += [{"step": row["step"] // 10, "eval/acc": 0.5}] * (row["step"] % 10 == 0)
    frame = view(write(tmp_path / "log.jsonl", *lines)).look()
    assert (frame.notes, frame.resumed) == ([], [])
    assert 60 < frame.alarmed[0] < 75
    write(tmp_path / "log.jsonl", {"step": 50, "entropy": 0.6}, mode="a")
    again = view(tmp_path / "log.jsonl").look()
    assert (again.resumed, again.alarmed) == ([50], [])


def test_a_validation_that_comes_after_its_step_is_compared(tmp_path):
    file = write(tmp_path / "m.jsonl", {"step": 0, "data": validation(1000, a=0.9)})
    one = view(file)
    for step, numbers in (
        (10, {"actor/entropy": 0.5}),
        (11, {"actor/entropy": 0.5}),
        (10, validation(1000, a=0.6)),
    ):
        assert one.look().alarms == []
        write(file, {"step": step, "data": numbers}, mode="a")
    (alarm,) = one.look().alarms
    assert (alarm.sign, alarm.step) == ("held_out", 10)


def test_of_more_numbers_than_a_row_may_have_the_step_and_our_own_are_kept(tmp_path):
    others = {f"val-aux/{number}": 0.5 for number in range(3000)}
    data = {**others, "pv_rl/held_out/balanced": 0.7}
    ((step, numbers),) = values(write(tmp_path / "m.jsonl", {"step": 20, "data": data}))
    assert (step, numbers["pv_rl/held_out/balanced"], len(numbers)) == (20, 0.7, 1999)


def test_the_sentinel_watches_by_the_names_of_other_trainers_and_of_ones_own(tmp_path):
    path = write(tmp_path / "log.jsonl", *collapsing())
    assert view(path).look().alarms == []
    frame = view(path, names=read_map(["actor/entropy=policy_entropy"])).look()
    assert {alarm.sign for alarm in frame.alarms} == {"entropy"}
    assert 60 < frame.alarmed[0] < 75
    rows = rows_of(frame)
    assert {"reward", "entropy", "mine"} <= set(rows)
    assert rows["reward"].unit == "mean of responses"
    assert "policy_entropy" not in rows
    trl = write(
        tmp_path / "trl.jsonl",
        *({"step": r["step"], "train/entropy": r["policy_entropy"]} for r in collapsing()),
    )
    assert view(trl).look().alarmed == frame.alarmed


@pytest.mark.parametrize("given", ["actor/entropy", "=x", "actor/entropy="])
def test_a_map_without_two_names_is_refused(given):
    with pytest.raises(ConfigError, match="give NAME=THEIRS"):
        read_map([given])


def test_only_metrics_that_are_asked_for_are_shown_beside_the_known_ones(tmp_path):
    path = write(tmp_path / "log.jsonl", {"step": 1, "reward": 1, "my/a": 1, "my/b": 2, "other": 3})
    assert set(rows_of(view(path, show=["my/*"]).look())) == {"reward", "my/a", "my/b"}


def test_hostile_names_are_text_on_the_terminal_and_in_the_page(tmp_path):
    name = "<img src=x onerror=alert(1)>\x1b[2J\u202e[bold]"
    frame = view(write(tmp_path / "log.jsonl", *({"step": s, name: s} for s in range(3)))).look()
    console = Console(file=io.StringIO(), width=140)
    console.print(Screen(frame))
    for shown in (console.file.getvalue(), to_page(frame, refresh=2)):
        assert not set("\x1b\u202e") & set(shown)
    assert "<img" not in to_page(frame, refresh=2)
    assert "&lt;img src=x" in to_page(frame, refresh=2)


def test_more_metrics_and_steps_than_can_be_kept_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr("pv_runs.watch.foreign.MOST_POINTS", 100)
    monkeypatch.setattr("pv_runs.watch.foreign.MOST_SERIES", 2)
    monkeypatch.setattr("pv_runs.watch.foreign.MOST_WATCHED", 50)
    path = write(tmp_path / "log.jsonl", *({"step": s, "a": s, "b": s, "c": s} for s in range(1000)))
    frame = view(path).look()
    steps = rows_of(frame)["a"].steps
    assert 20 < len(steps) <= 100
    assert steps[-1] == 999
    assert "more than 2 metrics" in frame.notes[0]
    assert frame.notes[1] == "the sentinel read the last 50 steps of the file"
    assert "c" not in rows_of(frame)
    attempts = [{"step": step, "a": 1} for step in range(30)] * 3  # of 90 steps the last 50 are read
    frame = view(write(path, *attempts)).look()
    assert (frame.notes[0], frame.resumed) == ("the sentinel read the last 50 steps of the file", [0, 0])


def events(folder):
    """A writer of events, and a function that adds one."""
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder), filename_suffix=f".{len(list(folder.glob('*')))}")

    def add(step, **scalars):
        parts = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        writer.add_event(Event(step=step, summary=Summary(value=parts)))
        writer.flush()

    return writer, add


def test_tensorboard_events_are_read_while_they_grow(tmp_path):
    writer, add = events(tmp_path / "runs")
    add(1, kl=0.25, reward=math.nan)
    one = view(tmp_path / "runs")
    assert one.look().step == 1
    add(2, kl=0.5)
    add(2, entropy=0.75)
    writer.close()
    (file,) = (tmp_path / "runs").iterdir()
    with file.open("ab") as end:
        end.write(b"half a record")
    frame = one.look()
    rows = rows_of(frame)
    assert list(rows["KL"].values) == [0.25, 0.5]
    assert list(rows["entropy"].values) == [0.75]
    assert rows_of(view(file).look())["KL"].last == 0.5


def test_tensorboard_files_of_a_resume_are_found_and_those_of_hyperparameters_are_no_run(tmp_path):
    writer, add = events(tmp_path)
    add(1, a=1)
    writer.close()
    one = view(tmp_path)
    for folder, step in ((tmp_path, 2), (tmp_path / "1764412345.6", 0)):
        writer, add = events(folder)
        add(step, a=step)
        writer.close()
    for seen in (one, view(tmp_path)):
        assert list(rows_of(seen.look())["a"].values) == [1, 2]


def test_the_sentinel_waits_for_all_metrics_of_a_tensorboard_step(tmp_path):
    writer, add = events(tmp_path)
    one = None
    for row in collapsing(80):
        add(row["step"], reward=0.5)
        one = one or view(tmp_path)
        one.look()  # between two metrics of a step
        add(row["step"], entropy=row["policy_entropy"])
    writer.close()
    assert 60 < one.look().alarmed[0] < 75


def test_without_tensorboard_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.util", None)
    (tmp_path / "events.out.tfevents.1").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"pip install tensorboard"):
        view(tmp_path)


def test_the_command_takes_a_file_or_a_run(tmp_path):
    path = write(tmp_path / "log.jsonl", *collapsing())
    out = CliRunner().invoke(
        app, ["watch", "--metrics", str(path), "--map", "actor/entropy=policy_entropy", "--once"]
    )
    assert out.exit_code == 0
    assert "log.jsonl  metrics file  step 120" in out.output
    assert "alarm  step" in out.output
    with pytest.raises(ConfigError, match="one of the two"):
        watch(tmp_path, file=view(path), once=True)
    with pytest.raises(ConfigError, match="one of the two"):
        watch(None, once=True)
