"""How `pv-rl watch` reads files that grow, change and are not what they should be."""

from __future__ import annotations

import json
import os

import pytest

from pv_judge.ledger.journal import Journal, fold
from pv_judge.ledger.row import LedgerRow, RuleHit
from pv_runs.growing_file import LONGEST_LINE, Replaced, Tail, last_lines
from pv_runs.metrics_log import Collector
from pv_runs.watch.numbers import Numbers
from pv_runs.watch.places import choose_run, find_places
from pv_runs.watch.status import total_steps
from pv_runs.watch.traces import Traces, excerpt

REWARD = "critic/score/mean"


def line(step, reward):
    return json.dumps({"step": step, "data": {REWARD: reward}}) + "\n"


def rewards(numbers, *paths):
    return numbers.look(paths).series.get(REWARD, {})


def test_a_line_is_read_once_and_only_when_its_end_is_there(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    tail = Tail(path)
    assert list(tail.look()) == [b"one"]
    assert list(tail.look()) == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert list(tail.look()) == [b"two", b"three"]


def test_what_was_read_is_not_read_again(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 99 + b"\n" + b"y" * 10_000 + b"\n")
    tail = Tail(path)
    list(tail.look())
    with path.open("r+b") as file:  # a change further back than the mark goes unseen, which is the price
        file.write(b"z")
    assert list(tail.look()) == []


@pytest.mark.parametrize("change", ["shorter", "as long", "another file"])
def test_a_file_that_was_written_anew_is_noticed(tmp_path, change):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    tail = Tail(path)
    list(tail.look())
    if change == "another file":
        (tmp_path / "new").write_bytes(b"one\ntwo\nthree\n")
        os.replace(tmp_path / "new", path)
    else:
        path.write_bytes(b"1\n" if change == "shorter" else b"six\nten\n")
    with pytest.raises(Replaced):
        list(tail.look())


def test_a_line_that_is_too_long_is_skipped_and_not_kept(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"a" * (2 * LONGEST_LINE))
    tail = Tail(path)
    assert list(tail.look()) == []
    assert len(tail._rest) == 0
    with path.open("ab") as file:
        file.write(b"a\nnext\n")
    assert list(tail.look()) == [b"next"]
    assert tail.skipped == 1


@pytest.mark.timeout(10)
def test_nobody_waits_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(OSError, match="no regular file"):
        list(Tail(tmp_path / "metrics.jsonl").look())
    assert rewards(Numbers(), tmp_path / "metrics.jsonl") == {}


def test_the_last_lines_are_whole_and_the_last_comes_first(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"1111\n2222\n3333\nhalf")
    assert last_lines(path, 100) == [b"3333", b"2222", b"1111"]
    assert last_lines(path, 12) == [b"3333"]  # 22, which has lost its beginning, is left out


def test_numbers_grow_with_the_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    numbers = Numbers()
    assert rewards(numbers, path) == {}
    path.write_text(line(1, 0.1))
    assert rewards(numbers, path) == {1: 0.1}
    with path.open("a") as file:
        file.write(line(2, 0.2))
    assert rewards(numbers, path) == {1: 0.1, 2: 0.2}


def test_a_run_that_was_started_again_begins_anew(tmp_path):
    path = tmp_path / "metrics.jsonl"
    numbers = Numbers()
    path.write_text(line(1, 0.1) + line(2, 0.2))
    rewards(numbers, path)
    path.write_text(line(1, 0.7))
    assert rewards(numbers, path) == {1: 0.7}


def test_a_resumed_run_throws_away_what_came_after_its_checkpoint(tmp_path):
    first, second = tmp_path / "metrics.jsonl", tmp_path / "metrics-2.jsonl"
    numbers = Numbers()
    first.write_text(line(1, 0.1) + line(2, 0.2) + line(3, 0.3))
    rewards(numbers, first)
    second.write_text(line(2, 0.9))
    assert rewards(numbers, first, second) == {1: 0.1, 2: 0.9}
    assert numbers.look([first, second]).last_step == 2


def test_many_keys_that_claim_to_be_rules_do_not_fill_the_memory(tmp_path):
    path = tmp_path / "metrics.jsonl"
    data = {f"pv_rl/reward/rule_{number}": 1.0 for number in range(10_000)}
    path.write_text(json.dumps({"step": 1, "data": data}) + "\n")
    assert len(Numbers().look([path]).series) == 64


def test_a_series_that_a_resume_has_emptied_is_gone():
    collector = Collector()
    collector.add(5, {"val-core/lab/right/acc/mean@1": 0.5})
    collector.begin_file(2)
    collector.add(3, {REWARD: 0.1})
    assert list(collector.log().series) == [REWARD]


def test_a_log_of_verls_own_is_found_by_what_is_in_it(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/other.jsonl").write_text('{"question": "?"}\n')
    log = tmp_path / "project/mine.jsonl"
    log.write_text(line(1, 0.5))
    assert choose_run(tmp_path) == tmp_path
    assert find_places(tmp_path, {}, {}).metrics == (log,)


def test_what_the_config_names_counts_where_the_folder_has_nothing(tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    (other / "dump").mkdir(parents=True)
    (other / "log.jsonl").write_text(line(1, 0.5))
    config = {
        "trainer.rollout_data_dir": "other/dump",
        "ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH": str(other / "log.jsonl"),
    }
    places = find_places(run, config, {"cwd": str(tmp_path)})
    assert places.metrics == (other / "log.jsonl",)
    assert places.rollouts == other / "dump"
    (run / "rollouts").mkdir()
    (run / "metrics.jsonl").write_text("")
    places = find_places(run, config, {"cwd": str(tmp_path)})
    assert (places.metrics, places.rollouts) == ((run / "metrics.jsonl",), run / "rollouts")


@pytest.mark.parametrize(
    ("said", "overrides", "total"),
    [
        ("24", [], 24),
        ("null", [], None),
        ("-1", [], None),
        ("${steps}", [], 7),
        ("24", ["a=1", "+trainer.total_training_steps=40"], 40),
        ("24", "not a list", 24),
    ],
)
def test_the_number_of_steps_is_the_configs_or_what_a_resume_changed_it_to(said, overrides, total):
    config = {"trainer.total_training_steps": said, "steps": "7"}
    assert total_steps(config, {"overrides": overrides}) == total


def test_an_excerpt_is_the_first_evidence_and_what_is_around_it():
    assert excerpt("It holds. so so so so", [(10, 21)]) == [("It holds. ", "text"), ("so so so so", "mark")]
    assert excerpt("a\n\x1b[2J b", [(2, 6)]) == [("a⏎ ", "text"), ("\\x1b[2J", "mark"), (" b", "text")]
    text = "a" * 500 + "b" * 1000 + "c" * 500
    pieces = excerpt(text, [(500, 1500), (1600, 1700)])
    assert pieces == [
        ("… ", "gap"),
        ("a" * 80, "text"),
        ("b" * 110, "mark"),
        ("[... 780 characters left out ...]", "gap"),
        ("b" * 110, "mark"),
        ("c" * 60, "text"),
        (" …", "gap"),
    ]


@pytest.mark.parametrize("span", [(-1, 3), (2, 2), (3, 99), (5, 1)])
def test_a_span_that_is_none_shows_the_end_of_the_trace(span):
    assert excerpt("short", [span]) == [("short", "text")]


def rows(*decisions):
    for number, decision in enumerate(decisions):
        hit = decision == "rules"
        yield LedgerRow(
            step=number,
            trace=f"{number} looping looping looping",
            rules=(RuleHit(rule="ngram_loop", start=2, end=25),) if hit else (),
            judge_text="it babbles \x1b[2J" if decision == "judge" else None,
            decision="fluent" if decision == "fluent" else "vetoed",
            decided_by="judge" if decision == "judge" else "rules",
            score=0.0,
        )


@pytest.mark.parametrize("folded", [False, True])
def test_the_ledger_says_what_was_vetoed_and_why_the_latest_first(tmp_path, folded):
    if folded:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install ./plugins/pv-judge")
    places = find_places(tmp_path, {}, {})
    places.ledger.mkdir(parents=True)
    journal = Journal(places.ledger)
    for row in rows("rules", "fluent", "judge", "fluent"):
        journal.append(row)
    journal.close()
    if folded:
        fold(journal.path)
    found, source = Traces().look(find_places(tmp_path, {}, {}))
    assert source == "vetoed, of the ledger"
    assert [(trace.step, trace.reason) for trace in found] == [
        (2, "judge: it babbles \\x1b[2J"),
        (0, "ngram_loop"),
    ]
    assert found[1].pieces == [("0 ", "text"), ("looping looping looping", "mark")]


def test_a_damaged_ledger_shows_what_can_be_read(tmp_path):
    places = find_places(tmp_path, {}, {})
    places.ledger.mkdir(parents=True)
    journal = Journal(places.ledger)
    journal.append(next(rows("rules")))
    journal.close()
    with journal.path.open("a") as file:
        file.write('[]\n{"trace": 3}\n{"row_id": "x", "decision": "vetoed"}\n{"trace": "half')
    assert [trace.step for trace in Traces().look(places)[0]] == [0]
    (places.ledger / "part-9.parquet").write_bytes(b"PAR1 not at all")
    assert Traces().look(places)[0] == []


def test_rollouts_are_looked_at_again_only_when_there_are_new_ones(tmp_path):
    folder = tmp_path / "rollouts"
    folder.mkdir()
    loop = json.dumps({"output": "First. " + "so it is true " * 30}) + "\n"
    (folder / "9.jsonl").write_text(loop + loop + '{"output": 3}\n[]\nnot JSON\n')
    (folder / "notes.jsonl").write_text(loop)
    traces = Traces()
    found, _ = traces.look(find_places(tmp_path, {}, {}))
    assert [trace.step for trace in found] == [9]  # the same text twice is shown once
    assert traces.look(find_places(tmp_path, {}, {}))[0] is found
    (folder / "10.jsonl").write_text(loop.replace("First", "Then"))
    assert [trace.step for trace in traces.look(find_places(tmp_path, {}, {}))[0]] == [10, 9]
