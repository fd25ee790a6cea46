"""Replaying a ledger: another threshold without a call, another judge over real HTTP, and human marks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from judge_server import Fault, JudgeServer, Script

from pv_judge.ledger import Ledger, LedgerRow, RuleHit, read_ledger
from pv_judge.rejudge.command import rejudge
from pv_judge.rejudge.marks import add_marks
from pv_judge.rejudge.report import compare
from pv_judge.rejudge.rows import THRESHOLD, Judgment, OldRow, decide, old_rows
from pv_judge.veto import JudgeOptions
from pv_rl.errors import ConfigError, DataError


def old(row_id, decision="fluent", by="judge", confidence=0.9, **others):
    values = {
        "row_id": row_id,
        "uid": row_id,
        "session": 0,
        "step": 1,
        "decision": decision,
        "decided_by": by,
        "judge_fluent": {"fluent": True, "vetoed": False}.get(decision) if by == "judge" else None,
        "confidence": confidence if by == "judge" else None,
        "verdict": True,
        "reward": 1.0 if decision == "fluent" else 0.0,
        "inner": 1.0,
    }
    return OldRow(**{**values, **others})


def judgment(fluent, confidence=0.9, **others):
    return Judgment(fluent=fluent, confidence=confidence, **others)


def row(uid, trace, decision="fluent", by="judge", confidence=0.9, **others):
    values = {
        "uid": uid,
        "session": 0,
        "step": 3,
        "trace": trace,
        "decision": decision,
        "decided_by": by,
        "judge_fluent": decision == "fluent" if by == "judge" else None,
        "confidence": confidence if by == "judge" else None,
        "verdict": True,
        "inner_score": 1.0,
        "score": 1.0 if decision == "fluent" else 0.0,
        "prompt_tokens": 500,
        "completion_tokens": 20,
        "requests": 1,
        "usd": 0.001,
    }
    return LedgerRow(**{**values, **others})


ROWS = (
    row("a", "a fine trace"),
    row("b", "a fine trace with an ANOMALY"),
    row("c", "another ANOMALY", "vetoed", confidence=0.6),
    row("d", "nothing wrong with it", "vetoed", confidence=0.95),
    row("e", "loop loop loop", "vetoed", "rules", rules=[RuleHit(rule="loop", start=0, end=9)]),
    row("f", "the server was down", "failed", "policy", failure="timeout", valid=False),
)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger") as writer:
        for one in ROWS:
            writer.append(one)
    return tmp_path / "ledger"


@pytest.fixture
def server():
    with JudgeServer(Script()) as running:
        yield running


def judge_file(tmp_path, url, **settings):
    endpoint = {"url": url, "model": "m", **settings.pop("endpoint", {})}
    settings = {"endpoints": [endpoint], "retries": {"attempts": 1}, **settings}
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps(settings))
    return path


def test_a_finding_vetoes_from_the_threshold_on():
    doubt = old("1", "vetoed", confidence=0.6)
    assert [decide(doubt, None, at) for at in (None, 0.6, 0.61)] == ["vetoed", "vetoed", "fluent"]
    missed = old("2", "fluent", judge_fluent=False, confidence=0.4)
    assert [decide(missed, None, at) for at in (None, 0.4, 0.5)] == ["fluent", "vetoed", "fluent"]
    assert decide(old("3", "fluent", confidence=1.0), None, 0.0) == "fluent"
    assert decide(old("4"), judgment(False, THRESHOLD), None) == "vetoed"
    assert decide(old("4"), judgment(False, THRESHOLD - 0.01), None) == "fluent"


def test_what_has_no_new_answer_keeps_its_decision():
    assert decide(old("1", "failed", "policy"), None, 0.9) == "failed"
    assert decide(old("2", "vetoed", judge_fluent=None), None, 0.99) == "vetoed"
    assert decide(old("3", "vetoed", "rules"), judgment(True), 0.5) == "vetoed"


def test_the_threshold_is_the_rewards_own():
    assert JudgeOptions().threshold == THRESHOLD


def test_old_and_new_are_counted():
    rows = [
        *(old(f"same{i}") for i in range(6)),
        old("new veto"),
        old("lost veto", "vetoed"),
        old("both", "vetoed"),
        old("rule", "vetoed", "rules"),
        old("never asked", "fluent", "rules"),
        old("old failed", "failed", "policy"),
        old("new failed"),
    ]
    judgments = {one.row_id: judgment(True) for one in rows if one.row_id != "rule"}
    judgments |= {
        "new veto": judgment(False),
        "both": judgment(False),
        "new failed": Judgment(failure="reset"),
    }
    report = compare(rows, judgments)
    assert report.by_rules == 1
    assert report.confusion == {
        ("fluent", "fluent"): 6,
        ("fluent", "vetoed"): 1,
        ("vetoed", "fluent"): 1,
        ("vetoed", "vetoed"): 1,
        ("not asked", "fluent"): 1,
        ("failed", "fluent"): 1,
        ("fluent", "failed"): 1,
    }
    # of 9 both decided: p_a = 7/9, each judge vetoes 2 of 9: p_e = 49/81 + 4/81, kappa = 10/28
    assert report.agreement.number == 9
    assert report.agreement.raw.value == pytest.approx(7 / 9)
    assert report.agreement.kappa.value == pytest.approx(10 / 28)
    assert report.agreement.ac1.value == pytest.approx((7 / 9 - 28 / 81) / (53 / 81))
    assert report.failures == {"reset": 1}


def test_rewards_are_those_without_and_with_a_veto():
    rows = [
        old("1", verdict=True, reward=1.0),
        old("2", verdict=False, reward=0.5),
        old("3", "vetoed", verdict=True, reward=0.0, inner=1.0),
        old("4", "vetoed", verdict=None, reward=0.0, inner=None),
        old("5", "failed", "policy", verdict=True, reward=None, inner=0.75),
        old("6", verdict=True, reward=1.0),
    ]
    judgments = {
        "1": judgment(True),
        "2": judgment(False),
        "3": judgment(True),
        "4": judgment(True),
        "5": judgment(True),
        "6": Judgment(failure="timeout"),
    }
    report = compare(rows, judgments)
    assert report.veto == "zero"
    assert report.new_rewards == {"1": 1.0, "2": 0.0, "3": 1.0, "5": 0.75}
    everything = report.rewards["all"]
    assert (everything.rows, everything.changed) == (4, 3)
    assert (everything.old_rewarded, everything.old_mean) == (3, 0.5)
    assert (everything.new_rewarded, everything.new_mean) == (4, 2.75 / 4)
    assert report.rewards["verdict False"].new_mean == 0.0
    assert "no verdict" not in report.rewards


def test_where_a_veto_abstains_a_new_veto_has_no_reward():
    rows = [old("1", "vetoed", reward=None), old("2")]
    report = compare(rows, {"1": judgment(True), "2": judgment(False)})
    assert report.veto == "abstain"
    assert report.new_rewards == {"1": 1.0, "2": None}
    assert (report.rewards["all"].old_rewarded, report.rewards["all"].new_rewarded) == (1, 1)
    assert report.rewards["all"].changed == 2


def test_rates_are_of_all_decisions_against_the_marks():
    rows = [
        *(replace(old(f"a{i}", "vetoed", "rules" if i else "judge"), human=True) for i in range(3)),
        replace(old("missed"), human=True),
        *(replace(old(f"f{i}"), human=False) for i in range(9)),
        replace(old("wrong", "vetoed"), human=False),
        replace(old("failed", "failed", "policy"), human=True),
        old("unmarked", "vetoed"),
    ]
    judgments = {one.row_id: judgment(one.row_id not in ("a0", "missed")) for one in rows if not one.by_rules}
    report = compare(rows, judgments)
    assert (report.old_marks.found, report.old_marks.wrong) == ((3, 4), (1, 10))
    assert (report.new_marks.found, report.new_marks.wrong) == ((4, 5), (0, 10))
    assert report.old_marks.true_positive.value == 0.75
    # Wilson of 1 in 10, as tables have it
    wrong = report.old_marks.false_positive
    assert (wrong.low, wrong.high) == pytest.approx((0.0179, 0.4042), abs=1e-4)


def test_another_threshold_needs_no_judge(ledger, capsys):
    rejudge(ledger=ledger, threshold=0.7)
    out = capsys.readouterr().out
    assert "a veto from confidence 0.7" in out
    assert "Decided by both judges: 4 rows. Agreement 75.0%" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["fluent", "2", "0", "0"] in lines
    assert ["vetoed", "1", "1", "0"] in lines
    assert ["all", "6", "0.4000", "0.6000", "+0.2000", "1"] in lines
    assert "not judged again: 1 row." in out
    assert "$0.0000 for 0 requests" in out


def test_without_yes_the_plan_is_printed_and_nothing_is_sent(ledger, server, tmp_path, capsys):
    config = judge_file(tmp_path, server.url, prices={"m": {"input": 1.0, "output": 1000.0}})
    rejudge(ledger=ledger, config=config)
    out = capsys.readouterr().out
    assert "To judge: 5 rows; answered in the cache: 0; requests to send: 5." in out
    assert "100 answer tokens: $0.1" in out  # five times the ledger's mean of 20
    assert "No request was sent" in out
    assert server.requests == []


def test_a_model_without_a_price_is_said(ledger, server, tmp_path, capsys):
    rejudge(ledger=ledger, config=judge_file(tmp_path, server.url))
    assert "no price for m in prices" in capsys.readouterr().out


def test_another_judge_is_asked_about_what_the_rules_left(ledger, server, tmp_path, capsys):
    config = judge_file(tmp_path, server.url, prices={"m": {"input": 1.0, "output": 1.0}})
    rejudge(ledger=ledger, config=config, yes=True, out=tmp_path / "rows.parquet")
    out = capsys.readouterr().out
    asked = " ".join(one["body"]["messages"][1]["content"] for one in server.chats())
    assert len(server.chats()) == 5
    assert "loop loop" not in asked
    lines = [line.split() for line in out.splitlines()]
    assert ["fluent", "1", "1"] in lines
    assert ["vetoed", "1", "1"] in lines
    assert ["failed", "1", "0"] in lines
    assert "Agreement 50.0%" in out
    table = pq.read_table(tmp_path / "rows.parquet").sort_by("uid")
    assert table.column("new_decision").to_pylist() == [
        "fluent",
        "vetoed",
        "vetoed",
        "fluent",
        "vetoed",
        "fluent",
    ]
    assert table.column("new_reward").to_pylist() == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    report = json.loads(pq.read_schema(tmp_path / "rows.parquet").metadata[b"pv_rl.rejudge"])
    assert report["requests"] == 5
    assert report["usd"] == pytest.approx((report["prompt_tokens"] + report["completion_tokens"]) / 1e6)
    assert report["old_usd"] == pytest.approx(0.006)


def test_dollars_that_nobody_knows_are_not_said_to_be_none(tmp_path, server, capsys):
    with Ledger(tmp_path / "ledger") as writer:
        writer.append(row("a", "one"))
        writer.append(row("b", "two", usd=None))  # of a judge without a price
    config = judge_file(tmp_path, server.url)
    rejudge(ledger=tmp_path / "ledger", config=config, yes=True, out=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["usd"], report["old_usd"]) == (None, None)
    assert capsys.readouterr().out.count("dollars unknown (a model has no price)") == 2


def test_what_the_cache_knows_is_not_sent_again(ledger, server, tmp_path, capsys):
    config = judge_file(tmp_path, server.url, cache=str(tmp_path / "answers.sqlite"))
    rejudge(ledger=ledger, config=config, yes=True)
    first = len(server.chats())
    capsys.readouterr()
    rejudge(ledger=ledger, config=config)  # and needs no --yes
    out = capsys.readouterr().out
    assert "answered in the cache: 5; requests to send: 0." in out
    assert "5 answers were from the cache" in out
    assert len(server.chats()) == first == 5


def test_another_prompt_is_sent_and_misses_the_cache(ledger, server, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("Is it fluent? Answer in JSON.")
    config = judge_file(tmp_path, server.url, cache=str(tmp_path / "answers.sqlite"))
    rejudge(ledger=ledger, config=config, yes=True)
    rejudge(ledger=ledger, config=config, prompt=tmp_path / "short.txt", yes=True)
    assert "with short@" in capsys.readouterr().out
    systems = [one["body"]["messages"][0]["content"] for one in server.chats()]
    assert systems.count("Is it fluent? Answer in JSON.") == 5
    assert len(systems) == 10


def test_a_trace_that_comes_twice_is_sent_once(tmp_path, server, capsys):
    with Ledger(tmp_path / "ledger") as writer:
        for uid in "abc":
            writer.append(row(uid, "the same"))
    rejudge(ledger=tmp_path / "ledger", config=judge_file(tmp_path, server.url), yes=True)
    assert "To judge: 3 rows; answered in the cache: 0; requests to send: 1." in capsys.readouterr().out
    assert len(server.chats()) == 1


def test_a_judge_that_fails_is_counted_and_invents_no_decision(ledger, tmp_path, capsys):
    script = Script(faults=[Fault(kind="status", status=400, contains="another ANOMALY")])
    with JudgeServer(script) as server:
        config = judge_file(tmp_path, server.url)
        rejudge(ledger=ledger, config=config, yes=True, out=tmp_path / "report.json")
    assert "client_error: 1 row." in capsys.readouterr().out
    report = json.loads((tmp_path / "report.json").read_text())
    assert {"old": "vetoed", "new": "failed", "rows": 1} in report["confusion"]
    assert report["agreement"]["number"] == 3
    assert report["rewards"]["all"]["rows"] == 5


def test_limits_of_a_step_do_not_stop_a_replay_and_those_of_the_run_do(ledger, server, tmp_path, capsys):
    budget = {"calls_per_step": 1, "calls_per_run": 3}
    rejudge(ledger=ledger, config=judge_file(tmp_path, server.url, budget=budget), yes=True)
    assert len(server.chats()) == 3
    assert "budget: 2 rows." in capsys.readouterr().out


def test_a_sample_is_the_same_for_the_same_seed(tmp_path, capsys):
    with Ledger(tmp_path / "ledger") as writer:
        for number in range(50):
            writer.append(row(f"{number}", "t"))

    def drawn(seed):
        out = tmp_path / "rows.parquet"
        rejudge(ledger=tmp_path / "ledger", threshold=0.5, sample=10, seed=seed, out=out)
        return pq.read_table(out).column("uid").to_pylist()

    assert len(set(drawn(1))) == 10
    assert drawn(1) == drawn(1) != drawn(2)
    assert "50 rows, 10 of them drawn" in capsys.readouterr().out


def test_a_key_is_in_no_output(ledger, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("JUDGE_KEY", "sk-planted-4711")
    script = Script(faults=[Fault(kind="unauthorized", contains="ANOMALY")], key="sk-planted-4711")
    with JudgeServer(script) as server:
        config = judge_file(
            tmp_path,
            server.url,
            endpoint={"api_key_env": "JUDGE_KEY"},
            cache=str(tmp_path / "answers.sqlite"),
        )
        rejudge(ledger=ledger, config=config, yes=True, out=tmp_path / "report.json")
        rejudge(ledger=ledger, config=config, yes=True, out=tmp_path / "rows.parquet")
        assert {one["key"] for one in server.chats()} == {True}
    written = "".join(capfd.readouterr()).encode()
    written += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    written += str(pq.read_table(tmp_path / "rows.parquet").to_pylist()).encode()
    assert b"authentication" in written
    assert b"planted" not in written


def test_marks_alone_give_the_rates_of_the_old_decisions(ledger, tmp_path, capsys):
    (tmp_path / "human.csv").write_text("uid,session,anomalous\nb,0,true\nc,0,1\nd,0,False\na,0,\nx,0,true\n")
    rejudge(ledger=ledger, marks=tmp_path / "human.csv")
    out = capsys.readouterr().out
    assert "1 of 2: 50.0%" in out
    assert "1 of 1: 100.0%" in out
    assert "without a row in the ledger: 1." in out
    assert "mean reward" not in out


def test_marks_are_read_by_row_id_from_json_lines(ledger, tmp_path):
    rows = old_rows(read_ledger(ledger))
    (tmp_path / "human.jsonl").write_text(json.dumps({"row_id": rows[2].row_id, "human": True}) + "\n\n")
    marked, lost = add_marks(rows, tmp_path / "human.jsonl")
    assert [one.human for one in marked] == [None, None, True, None, None, None]
    assert lost == 0


def test_marks_in_the_ledgers_own_column_count(ledger, tmp_path, capsys):
    table = read_ledger(ledger)
    human = pa.array([False, True, True, False, True, None])
    pq.write_table(table.append_column("human", human), tmp_path / "marked.parquet")
    rejudge(ledger=tmp_path / "marked.parquet", threshold=0.99)
    out = capsys.readouterr().out
    assert "2 of 3: 66.7%" in out  # before: c and e
    assert "1 of 3: 33.3%" in out  # e, which the rules vetoed
    pq.write_table(table.append_column("human", pa.array(["?"] * 6)), tmp_path / "marked.parquet")
    with pytest.raises(DataError, match="column human"):
        rejudge(ledger=tmp_path / "marked.parquet", threshold=0.99)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("m.csv", "uid,anomalous\na,maybe\n", "line 2 .* give true or false"),
        ("m.csv", "uid,mark\na,true\n", "line 2 .* needs anomalous or human"),
        ("m.csv", "trace,anomalous\na,true\n", "row_id or uid"),
        ("m.csv", "uid,anomalous\na,true\na,false\n", "marked twice"),
        ("m.csv", "uid,anomalous\nx,true\n", "none of its marks"),
        ("m.csv", "step,anomalous\n3,true\n", "several rows .* row_id, or add uid and session"),
        ("m.csv", "uid,anomalous\n", "no marks"),
        ("m.jsonl", '{"uid": "a"', "line 1 .* not JSON"),
        ("m.jsonl", "[1]", "line 1 .* not an object"),
        ("m.txt", "", "ends in .csv, .jsonl"),
    ],
)
def test_marks_that_cannot_be_used_are_refused(ledger, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        rejudge(ledger=ledger, marks=tmp_path / name)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "nothing to compare"),
        ({"prompt": Path("p.txt"), "threshold": 0.5}, "--prompt needs --config"),
        ({"threshold": 1.5}, "from 0 to 1"),
        ({"threshold": 0.5, "sample": 0}, "at least 1"),
        ({"threshold": 0.5, "out": Path("report.csv")}, "a .json file"),
        ({"threshold": 0.5, "out": Path("nowhere/report.json")}, "there is no folder"),
    ],
)
def test_options_that_say_nothing_are_refused(ledger, options, said):
    with pytest.raises(DataError, match=said):
        rejudge(ledger=ledger, **options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("endpoints: [{url: router, model: m}]", "only within a run"),
        (
            "endpoints: [{url: 'http://h/v1', model: '${trainer.model}'}]",
            "refers to trainer.model, which the config does not have",
        ),
        ("endpoints: [{url: 'http://h/v1', model: m}]\nretrys: {}", "judge.retrys"),
        ("- 1", "not a YAML mapping"),
        ("judge: null", "only rules"),
        ("judge: {endpoints: []}", "judge.endpoints"),
        *((text, "cannot be read") for text in ("a: [", "7", "a: !!int ''", "a: !!bool so", "- " * 900)),
    ],
)
def test_a_config_that_is_none_is_refused(ledger, tmp_path, text, said):
    (tmp_path / "judge.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        rejudge(ledger=ledger, config=tmp_path / "judge.yaml")


def test_the_options_of_a_reward_are_taken_for_their_judge(ledger, server, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("Is it fluent?")
    (tmp_path / "reward.yaml").write_text(
        f"veto: zero\nprompt: {tmp_path / 'short.txt'}\nthreshold: 0.8\n"
        f"judge:\n  endpoints: [{{url: '{server.url}', model: mine}}]\n"
    )
    rejudge(ledger=ledger, config=tmp_path / "reward.yaml")
    out = capsys.readouterr().out
    assert "New: mine with short@" in out
    assert "a veto from confidence 0.8" in out
    rejudge(ledger=ledger, config=tmp_path / "reward.yaml", threshold=0.6)
    assert "a veto from confidence 0.6" in capsys.readouterr().out
