"""The whole pipeline by its command: from files to a verl parquet, a card and a report, and on where it stopped."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import places
import pytest
from judge_server.script import Latency
from panel import JudgeServer, Script, answer
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.records import Aside, Judgment, Label, Problem, Proof, Qpc
from pv_data.run import collect, pipeline, progress
from pv_data.table import read_rows

SHARED = places.SHARED / "data"
GSM8K = SHARED / "gsm8k_solutions" / "example_model_solutions.jsonl"
CONFIG = """
vars: {{url: "???"}}
run_dir: {run}
sources:
  - {{kind: table, path: {rows}, name: Mine, options: {{columns: {columns}}}}}
models:
  judge:
    endpoints: [{{url: "${{vars.url}}", model: judge}}]
    retries: {{attempts: 2, backoff_s: 0.01}}
    prices: {{judge: {{input: 1.0, output: 1.0}}}}
panel: [{{model: judge, votes: 3}}]
split: {{test: 0.3}}
"""
COLUMNS = "{problem: question, proof: solution, label: right}"


def rows(path: Path, number: int) -> None:
    lines = [
        {
            "question": f"Prove that the sum of the first {n // 4 + 3} odd numbers is the square of {n // 4 + 3}.",
            "solution": f"{'SOUND' if n % 2 else 'A hope'}: attempt {n} goes by induction over the number of summands.",
            "right": n % 2 == 1,
        }
        for n in range(number)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def by_mark(prompt: str, _: str) -> str:
    return answer("SOUND" in prompt)


def invoke(*arguments: str):
    return CliRunner().invoke(app, ["run", *arguments])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rows(tmp_path / "rows.jsonl", 40)
    path = tmp_path / "mine.yaml"
    path.write_text(CONFIG.format(run=tmp_path / "run", rows=tmp_path / "rows.jsonl", columns=COLUMNS))
    return path


def test_the_command_makes_a_set_and_goes_on_for_nothing(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        done = invoke(str(config), url)
        assert done.exit_code == 0, done.output
        assert "10 of 10 problems are one cluster and go to the same split" in " ".join(done.output.split())
        assert "split.test=0.3 asks for 30% of the questions, and 0% (0 of 10) went to test." in done.output
        assert "there is 1 cluster, the largest of 10 questions." in done.output
        assert len(server.chats()) == 120
        again = invoke(str(config), url, "duplicates.threshold=null")
        assert again.exit_code == 0, again.output
        assert "split.test" not in again.output
        assert len(server.chats()) == 120
    made = list(read_rows(tmp_path / "run" / "export" / "qpc", Qpc))
    assert len(made) == 40
    assert {one.split for one in made} == {"train", "test"}
    train = {one.problem_id for one in made if one.split == "train"}
    assert not train & {one.problem_id for one in made if one.split == "test"}
    export = tmp_path / "run" / "export"
    assert (export / "verl" / "train.parquet").exists()
    assert "precision of True" in (export / "report" / "labels.md").read_text()
    assert (export / "dataset" / "README.md").read_text().startswith("---\n")


def test_more_sources_can_be_added_and_nothing_else_changed(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        changed = invoke(str(config), url, "split.test=0.3", "labels.rule=majority", "filters.geometry=false")
        assert changed.exit_code == 1
        assert "labels.rule was" in " ".join(changed.output.split())
        assert "filters.geometry was true and is false" in " ".join(changed.output.split())
        redone = invoke(str(config), url, "labels.rule=majority", "--redo", "judge")
        assert redone.exit_code == 0, redone.output
        assert len(server.chats()) == 120
        assert {one.rule for one in read_rows(tmp_path / "run" / "labels", Label)} == {"majority 2 of 3"}
        rows(tmp_path / "more.jsonl", 48)
        text = config.read_text().replace(
            "models:", MORE.format(rows=tmp_path / "more.jsonl", columns=COLUMNS) + "models:"
        )
        config.write_text(text)
        grown = invoke(str(config), url, "labels.rule=majority")
        assert grown.exit_code == 0, grown.output
        assert len(server.chats()) == 120 + 8 * 3  # the other 40 say what was judged before
    assert len(list(read_rows(tmp_path / "run" / "problems", Problem))) == 10 + 12


MORE = """  - {{kind: table, path: {rows}, name: More, options: {{columns: {columns}}}}}
"""


@pytest.mark.parametrize("option", ["language: no", "licence: 4.0", "colour: red", "columns: 5"])
def test_an_option_that_a_source_does_not_take_ends_the_run_before_anything_is_read(config, tmp_path, option):
    wrong = f"  - {{kind: table, path: {tmp_path / 'rows.jsonl'}, name: More, options: {{{option}}}}}\n"
    config.write_text(config.read_text().replace("models:", wrong + "models:"))
    done = invoke(str(config), "vars.url=http://127.0.0.1:9/v1")
    assert done.exit_code == 1, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert option.partition(":")[0] in done.output
    assert not (tmp_path / "run" / "problems").exists()


def test_a_dry_run_says_what_it_would_cost_and_asks_nothing(config, tmp_path):
    told = invoke(str(config), "vars.url=http://127.0.0.1:9/v1", "--dry-run", "budget_usd=0.001")
    assert told.exit_code == 0, told.output
    assert "120" in told.output
    assert "The budget, $0.00, would end the run before it is done." in told.output
    assert re.search(
        r"all +120 +\S+ +0\.12M +0\.\d\d +1\.\d\d\s", told.output
    )  # 120 x 1,000 and x 8,192 tokens
    assert "out: an answer has 1,000 tokens (models.NAME.expected_tokens); at most: each" in " ".join(
        told.output.split()
    )
    assert not (tmp_path / "run").exists()


def test_a_dry_run_counts_what_the_command_would_still_ask(config, tmp_path):
    def calls(*more: str) -> int:
        told = invoke(str(config), url, "--dry-run", *more)
        assert told.exit_code == 0, told.output
        return int(re.search(r"all +([\d,]+)", told.output)[1])

    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert calls() == 120
        assert invoke(str(config), url).exit_code == 0
        before = sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.parquet"))
        assert calls() == 0
        told = invoke(str(config), url, "--dry-run", "budget_usd=1").output
        assert "No model would be asked: the run would only collect, split and export." in told
        assert "120 questions of the run have been asked before and are not in the table" in told
        changed = invoke(str(config), url, "--dry-run", "labels.rule=majority")
        assert "labels.rule was" in " ".join(changed.output.split())
        assert calls("labels.rule=majority", "--redo", "judge") == 0
        assert "'jugde' is not a stage" in invoke(str(config), url, "--dry-run", "--redo", "jugde").output
        rows(tmp_path / "more.jsonl", 48)
        more = MORE.format(rows=tmp_path / "more.jsonl", columns=COLUMNS)
        config.write_text(config.read_text().replace("models:", more + "models:"))
        assert calls() == 24
        told = " ".join(invoke(str(config), url, "--dry-run", "budget_usd=0.11").output.split())
        assert "The budget, $0.11, of which $0.10 is spent, would end the run before it is done." in told
        assert sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.parquet")) == before
        assert invoke(str(config), url).exit_code == 0
        assert len(server.chats()) == 120 + 24


def test_a_row_that_got_no_answer_is_asked_about_again_on_request(config, tmp_path):
    state = {"well": False}

    def reply(prompt: str, model: str) -> str:
        return by_mark(prompt, model) if state["well"] or "attempt 7 " not in prompt else "hm"

    with JudgeServer(Script(reply=reply)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        (aside,) = read_rows(tmp_path / "run" / "aside", Aside)
        assert aside.reason == "no answer: invalid_json"
        asked = len(server.chats())
        state["well"] = True
        assert invoke(str(config), url).exit_code == 0
        assert len(server.chats()) == asked
        assert invoke(str(config), url, "retry_aside=true").exit_code == 0
        assert len(server.chats()) == asked + 3
    assert list(read_rows(tmp_path / "run" / "aside", Aside)) == []
    assert len(list(read_rows(tmp_path / "run" / "labels", Label))) == 40


def test_each_stage_can_be_done_again_for_nothing(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        before = sorted(read_rows(tmp_path / "run" / "labels", Label), key=lambda one: one.id)
        for stage in ("collect", "generate", "judge"):
            done = invoke(str(config), url, "--redo", stage)
            assert done.exit_code == 0, done.output
            assert sorted(read_rows(tmp_path / "run" / "labels", Label), key=lambda one: one.id) == before
        assert len(server.chats()) == 120


def test_a_redo_that_is_cut_short_leaves_no_old_rows_under_new_settings(config, tmp_path, monkeypatch):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        with monkeypatch.context() as patch:
            patch.setattr(pipeline.shutil, "rmtree", lambda *_: exec("raise KeyboardInterrupt"))
            assert invoke(str(config), url, "labels.rule=majority", "--redo", "judge").exit_code != 0
        assert invoke(str(config), url, "labels.rule=majority").exit_code == 1
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "write_manifest", lambda *_: exec("raise KeyboardInterrupt"))
            assert invoke(str(config), url, "labels.rule=majority", "--redo", "judge").exit_code != 0
        assert not list(read_rows(tmp_path / "run" / "judgments", Judgment))
        assert invoke(str(config), url, "labels.rule=majority").exit_code == 0  # no row hangs on the old rule
    assert {one.rule for one in read_rows(tmp_path / "run" / "labels", Label)} == {"majority 2 of 3"}


def test_proofs_that_a_second_try_has_made_are_judged_too(config, tmp_path):
    state = {"well": False, "n": 0}

    def reply(prompt: str, model: str) -> str:
        if "condition1_satisfied" in prompt:
            return by_mark(prompt, model)
        state["n"] += 1
        if not state["well"] and state["n"] % 2:
            return ""
        return f"SOUND, and in {state['n']} words: we go by induction over the number of summands, and all is well."

    config.write_text(config.read_text() + "generate: [{method: proof, model: judge}]\n")
    with JudgeServer(Script(reply=reply)) as server:
        url = f"vars.url={server.url}"
        first = invoke(str(config), url, "models.judge.retries.attempts=1")
        assert first.exit_code == 0, first.output
        made = len(list(read_rows(tmp_path / "run" / "generated", Proof)))
        assert 0 < made < 10
        state["well"] = True
        assert invoke(str(config), url, "retry_aside=true").exit_code == 0
    proofs = {one.id for one in read_rows(tmp_path / "run" / "generated", Proof)}
    labels = [one.proof_id for one in read_rows(tmp_path / "run" / "labels", Label)]
    assert len(proofs) == 10
    assert proofs <= set(labels)
    assert len(labels) == len(set(labels)) == 50


def test_a_folder_can_be_gone_on_with_where_its_sources_lie_elsewhere(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        moved = tmp_path / "moved.jsonl"
        (tmp_path / "rows.jsonl").rename(moved)
        assert invoke(str(config), url, f"sources.0.path={moved}").exit_code == 0
        moved.write_text(moved.read_text() + "{}\n")
        assert invoke(str(config), url, f"sources.0.path={moved}").exit_code == 1


def test_a_copy_of_a_folder_goes_on_where_its_sources_are_not(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert invoke(str(config), url).exit_code == 0
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        elsewhere = [str(config), url, f"run_dir={tmp_path / 'copy'}", "sources.0.path=/gone/rows.jsonl"]
        gone_on = invoke(*elsewhere, "labels.rule=majority", "--redo", "judge")
        assert gone_on.exit_code == 0, gone_on.output
        assert len(server.chats()) == 120
        assert {one.rule for one in read_rows(tmp_path / "copy" / "labels", Label)} == {"majority 2 of 3"}
        assert invoke(*elsewhere, "labels.rule=majority").exit_code == 0
        again = invoke(*elsewhere, "labels.rule=majority", "--redo", "collect")
        assert again.exit_code == 1
        assert "/gone/rows.jsonl" in "".join(again.output.split())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("sources.0.options.license=MIT", "the source table has no option 'license'. Did you mean licence?"),
        ("generate=[{method: naive_negative, options: {leest: 1}}]", "generate[0].options of naive_negative"),
    ],
)
def test_an_unknown_option_is_refused_before_folder_and_settings(wrong, says, config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        assert says in " ".join(invoke(str(config), url, wrong).output.split())
        assert not (tmp_path / "run").exists()
        assert invoke(str(config), url).exit_code == 0
        for arguments in ([wrong], [wrong, "--dry-run"]):
            assert says in " ".join(invoke(str(config), url, *arguments).output.split())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("sources.0.options.columns.problem=qestion", "qestion"),
        ("labels.of=[prof]", "'prof' does not exist"),
        ("sources.0.path=none.jsonl", "none.jsonl"),
    ],
)
def test_what_was_wrong_at_first_can_be_mended(wrong, says, config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        url = f"vars.url={server.url}"
        for arguments in ([wrong], [wrong, "--dry-run"]):
            told = invoke(str(config), url, *arguments)
            assert told.exit_code == 1, told.output
            assert says in told.output
        mended = invoke(str(config), url)
        assert mended.exit_code == 0, mended.output
        assert len(list(read_rows(tmp_path / "run" / "export" / "qpc", Qpc))) == 40


def test_what_has_a_label_is_exported_before_the_run_is_done(config, tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        ask = [str(config), f"vars.url={server.url}", "split.train_labels=[panel]", "split.test=0"]
        stopped = invoke(*ask, "budget_usd=0", "models.judge.sampling.max_tokens=100")
        assert stopped.exit_code == 3, stopped.output
        assert "with --export-only to export what has a label" in " ".join(stopped.output.split())
        nothing = invoke(*ask, "--export-only", "models.judge.sampling.max_tokens=100")
        assert nothing.exit_code == 1
        assert "40 no label" in " ".join(nothing.output.split())
        assert not server.chats()
        known = ["split.train_labels=[known]", "models.judge.sampling.max_tokens=100"]
        part = invoke(*ask, *known, "--export-only")
        assert part.exit_code == 0, part.output
        assert not server.chats()
        export = tmp_path / "run" / "export"
        assert len(list(read_rows(export / "qpc", Qpc))) == 40
        assert "about 120 questions have still to be asked" in (export / "dataset" / "README.md").read_text()
        assert invoke(*ask, *known).exit_code == 0
        assert "still to be asked" not in (export / "dataset" / "README.md").read_text()


def test_progress_counts_answers_and_not_only_written_chunks(config, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_S", 0.05)
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.1))) as server:
        told = invoke(str(config), f"vars.url={server.url}", "models.judge.limits.concurrency=8")
    done = {int(one) for one in re.findall(r"judge: (\d+) of 120 questions", told.output)}
    assert max(done) == 120
    assert done - {0, 120}  # the 40 proofs are one chunk


def test_a_source_that_broke_in_the_middle_and_was_taken_out_leaves_nothing(config, tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "PART_ROWS", 8)
    rows(tmp_path / "whole.jsonl", 4)
    rows(tmp_path / "long.jsonl", 400)
    packed = gzip.compress((tmp_path / "long.jsonl").read_bytes())
    (tmp_path / "broken.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    given, proofs = config.read_text(), tmp_path / "run" / "proofs"

    def run_with(*more: str):
        lines = "".join(MORE.format(rows=tmp_path / name, columns=COLUMNS) for name in more)
        config.write_text(given.replace("models:", lines + "models:"))
        return invoke(str(config), f"vars.url={server.url}")

    with JudgeServer(Script(reply=by_mark)) as server:
        assert run_with("broken.jsonl.gz").exit_code == 1
        assert any(proofs.glob("01-*"))
        assert run_with().exit_code == 0
        assert not any(proofs.glob("01-*"))
        assert len(server.chats()) == 120
        assert run_with("whole.jsonl").exit_code == 0
    there = {one.id for one in read_rows(proofs, Proof)}
    assert there == {one.proof_id for one in read_rows(tmp_path / "run" / "labels", Label)}


@pytest.mark.parametrize("damage", ["file", "read-only"])
def test_a_folder_that_cannot_be_written_is_said(damage, config, tmp_path):
    if damage == "file":
        (tmp_path / "run").write_text("no folder")
    else:
        (tmp_path / "run").symlink_to("/proc/none")
    told = invoke(str(config), "vars.url=http://127.0.0.1:9/v1")
    assert told.exit_code == 1
    assert told.output.startswith("error ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.yaml"], "nowhere.yaml is not a file"),
        (["gsm8k_judge"], "no config is called 'gsm8k_judge'. Did you mean gsm8k_judges?"),
        (["gsm8k_judges"], "vars.data_dir has no value. Set it: vars.data_dir=VALUE"),
        (["gsm8k_judges", "vars.data_dir=x", "vars.judge_url=http://x/v1", "labels.rul=x"], "rul"),
        (["gsm8k_judges", "vars.data_dir=x", "vars.judge_url=ftp://x"], "begins with http"),
        (["gsm8k_judges", "vars.data_dir=x", "vars.judge_url=http://x/v1", "budget_usd=1"], "needs a price"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_starts(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = invoke(*arguments)
    assert told.exit_code == 1
    assert says in " ".join(told.output.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "text", ["a: {b", "- 1", "a: 1\na: 2", "\x00", "run_dir: [1", "x: !!python/object:os.system {}"]
)
def test_a_file_that_is_no_config_is_said(text, tmp_path):
    (tmp_path / "odd.yaml").write_text(text)
    told = invoke(str(tmp_path / "odd.yaml"))
    assert told.exit_code == 1
    assert told.output.startswith("error ")


@pytest.mark.skipif(not GSM8K.exists(), reason="../shared/data is not there")
def test_the_report_says_what_unanimity_and_majority_are_worth_where_labels_are_known(tmp_path):
    """Judges that slip: unanimity keeps less and is right more often."""
    known = {}

    def reply(prompt: str, _: str) -> str:
        for text, right in known.items():
            if text in prompt:
                state["n"] += 1
                return answer(right != (state["n"] % 7 == 0))
        raise AssertionError(prompt)

    state = {"n": 0}
    from pv_data.plugins import SOURCES

    for row in SOURCES.named("gsm8k_solutions").read(GSM8K):
        if isinstance(row, Proof) and row.known is not None:
            known[row.text] = row.known
            if len(known) == 60:
                break
    with JudgeServer(Script(reply=reply)) as server:
        done = invoke(
            *(
                "gsm8k_judges",
                f"vars.data_dir={SHARED}",
                f"vars.judge_url={server.url}",
                f"run_dir={tmp_path}/run",
            ),
            "sources.0.limit=10",
        )
        assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "run" / "export" / "report" / "labels.json").read_text())
    assert report
    text = (tmp_path / "run" / "export" / "report" / "labels.md").read_text()
    assert "| GSM8K/solution/175b\\_verification | majority |" in text
