"""The audit in Label Studio: tasks without labels, exports that are recorded once, readers who differ and a third."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from audit_cases import fill, write_run
from label_studio import annotation, export, tasks_of
from typer.testing import CliRunner

from pv_data.audit import prove, read_audit
from pv_data.cli import app
from pv_data.records import AuditMark, Label, Problem, Proof
from pv_data.run.audit import draw_sheet, record_sheet
from pv_data.run.label_studio import draw_tasks
from pv_data.run.label_studio_export import record_export
from pv_data.table import read_rows, write_part
from pv_rl.errors import DataError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two slices of 30 labelled proofs each, of 10 questions, all to be read."""
    run = tmp_path / "run"
    run.mkdir()
    problems = [Problem(source="S", native_id=str(n), text=f"Prove ${n}<x$ <b>.") for n in range(10)]
    proofs = [
        Proof(
            problem_id=problem.id,
            source="S",
            method="proof",
            model=model,
            text=f"{n} by {model}:\n<script>$a_{n}$",
        )
        for problem in problems
        for model in ("a", "b")
        for n in range(3)
    ]
    write_run(run, problems, proofs)
    return run


@pytest.fixture
def tasks(run: Path) -> Path:
    draw_tasks(run, run / "tasks.json", pilot=1)
    return run / "tasks.json"


def ids(tasks: Path) -> list[str]:
    return [data["proof_id"] for data in tasks_of(tasks)]


def by(tasks: Path, users: dict[int, str], minute: int = 0) -> dict[str, list[dict]]:
    """The same verdict of each user on all proofs."""
    return {
        proof: [annotation(user, verdict, minute) for user, verdict in users.items()] for proof in ids(tasks)
    }


def marks(run: Path) -> list[AuditMark]:
    return list(read_rows(run / "marks", AuditMark))


def test_tasks_show_the_texts_and_no_label(run, tasks):
    data = tasks_of(tasks)
    assert len(data) == 60
    draw_sheet(run, run / "sheet.csv", pilot=1)
    with (run / "sheet.csv").open(newline="") as file:
        assert ids(tasks) == [row["proof_id"] for row in csv.DictReader(file)]
    assert set(data[0]) == {"proof_id", "round", "draw", "problem", "proof", "as_written"}
    slices = [
        one.slice for proof in ids(tasks) for one in read_rows(run / "labels", Label) if one.id == proof
    ]
    assert slices != sorted(slices)
    assert len({json.dumps(one, sort_keys=True) for one in data}) == 60
    assert all(
        "&lt;script&gt;<math " in one["proof"] and "&lt;script&gt;$a_" in one["as_written"] for one in data
    )
    assert not re.search("judge|unanimous|S/proof", tasks.read_text())


def test_the_labeling_configuration_names_what_tasks_and_exports_have(run, tasks):
    config = ET.parse(tasks.with_suffix(".xml")).getroot()
    values = {one.get("value") for one in config.iter("HyperText")}
    assert values == {"$problem", "$proof", "$as_written"}
    names = {one.get("name") for one in config.iter() if one.tag in ("Choices", "TextArea")}
    assert names == {"verdict", "fault", "step", "comment"}
    choices = config.find("Choices[@name='verdict']")
    assert choices is not None
    assert [one.get("value") for one in choices] == ["correct", "incorrect", "cannot tell"]


def test_two_readers_and_a_third_come_back_as_the_bounds_of_their_marks(run, tasks):
    """User 1 finds all right, user 2 six of them wrong; the third agrees with user 2 on four of the six."""
    said = by(tasks, {1: "correct", 2: "correct"})
    wrong = ids(tasks)[:6]
    for proof in wrong:
        faults = {"fault": "logic", "step": "line <2> $x$", "comment": "no"}
        said[proof][1] = annotation(2, "incorrect", said=faults)
    taken = record_export(run, [export(tasks, run / "e.json", said)], {"1": "anna", "2": "bob"})
    assert (taken.recorded, taken.unchanged, taken.left_out, taken.read_by) == (120, 0, Counter(), {2: 60})
    assert len(read_audit(run).marks) == 54
    assert draw_tasks(run, run / "none.json", pilot=1).disputed == 6
    assert not (run / "none.json").exists()

    assert set(draw_tasks(run, run / "third.json", third=True, pilot=1).proofs) == set(wrong)
    data = tasks_of(run / "third.json")
    for one in data:
        assert "line &lt;2&gt; <math" in one["earlier"]
        assert "Kind of fault" in one["earlier"]
        assert not re.search("anna|bob|user", one["earlier"])
    firsts = {one["earlier"].partition("Reader 1: ")[2].partition("<")[0] for one in data}
    assert firsts == {"correct", "incorrect"}  # the place does not say whose a reason is
    assert 'value="$earlier"' in (run / "third.xml").read_text()

    third = {
        proof: [annotation(3, "incorrect" if number < 4 else "correct", 30)]
        for number, proof in enumerate(wrong)
    }
    assert record_export(run, [export(run / "third.json", run / "f.json", third)]).recorded == 6
    audit = read_audit(run)
    human = {proof: mark.human for proof, mark in audit.marks.items()}
    assert human == {proof: proof not in wrong[:4] for proof in ids(tasks)}
    proven = prove(audit.marks.values(), audit.sizes)
    assert (proven.audited.pooled.agree, proven.audited.pooled.checked) == (56, 60)
    assert all(state.verdict != "open" for state in proven.states.values())

    told = json.loads(CliRunner().invoke(app, ["audit", "status", str(run), "--json", "-"]).output)["readers"]
    anna, bob, carl = told["people"]
    assert [(one["auditor"], one["marks"], one["third"]) for one in (anna, bob, carl)] == [
        ("anna", 60, 0),
        ("bob", 60, 0),
        ("user 3", 6, 6),
    ]
    assert (anna["hours"], anna["minutes"]) == (60 * 90 / 3600, 1.5)
    (pair,) = told["pairs"]
    assert (pair["auditors"], pair["agreement"]["number"]) == (["anna", "bob"], 60)
    assert (pair["agreement"]["raw"]["value"], pair["agreement"]["kappa"]["value"]) == (0.9, 0.0)
    assert told["blind"]["alpha"] == pytest.approx(1 - 0.1 / (1 - (114 * 113 + 6 * 5) / (120 * 119)))
    shown = CliRunner().invoke(app, ["audit", "status", str(run)]).output
    assert "anna and bob" in shown
    assert "For a third reader: 0; left without an answer, and not counted: 0" in shown


def test_an_export_is_recorded_once_and_grows(run, tasks):
    said = by(tasks, {1: "correct"})
    few = dict(list(said.items())[:20])
    assert record_export(run, [export(tasks, run / "e.json", few)]).recorded == 20
    before = (run / "marks").stat().st_mtime_ns, marks(run)
    again = record_export(run, [run / "e.json"])
    assert (again.recorded, again.unchanged) == (0, 20)
    assert ((run / "marks").stat().st_mtime_ns, marks(run)) == before
    taken = record_export(run, [export(tasks, run / "e.json", said)])
    assert (taken.recorded, taken.unchanged, taken.read_by) == (40, 20, {1: 60})
    # tasks that were deleted in Label Studio take no mark away, and an updated annotation is the later word
    changed = {ids(tasks)[0]: [annotation(1, "incorrect", 0, updated_at="2026-11-29T12:00:00Z")]}
    taken = record_export(run, [export(tasks, run / "e.json", changed)])
    assert (taken.recorded, len(marks(run))) == (1, 61)
    assert sum(mark.agrees for mark in read_audit(run).marks.values()) == 59
    assert record_export(run, [export(tasks, run / "e.json", said)]).recorded == 0  # an older export


def test_a_comment_that_cannot_be_stored_as_it_is_is_recorded_once(run, tasks):
    said = {ids(tasks)[0]: [annotation(1, "incorrect", said={"step": "\ud800", "comment": "a\x00b\r\n"})]}
    file = export(tasks, run / "e.json", said)
    assert [record_export(run, [file]).recorded for _ in range(2)] == [1, 0]
    assert [(mark.step, mark.note) for mark in marks(run)] == [("?", "a\x00b\r\n")]


def test_exports_of_one_project_for_each_reader_are_recorded_together(run, tasks):
    first = export(tasks, run / "e1.json", by(tasks, {1: "correct"}))
    second = export(tasks, run / "e2.json", by(tasks, {2: "correct"}))
    call = ["audit", "record", str(run), str(first), str(second), "--auditor", "1=anna", "--auditor", "2=bob"]
    told = CliRunner().invoke(app, call)
    assert "120 marks recorded, 0 recorded before" in told.output
    assert "of 60 proofs drawn: 60 read by 2" in told.output
    assert {mark.auditor for mark in marks(run)} == {"anna", "bob"}


@pytest.mark.parametrize(
    ("given", "human", "reason"),
    [
        ([annotation(1, "correct")], True, ""),
        ([annotation(1, "cannot tell")], None, ""),
        ([annotation(1, "correct"), annotation(1, "incorrect", 5)], False, "replaces"),
        ([annotation(1, "incorrect", 5), annotation(1, "correct")], False, "replaces"),
        ([annotation(1, None, was_cancelled=True), annotation(1, "correct", 1)], True, "skipped"),
        ([annotation(1, "correct", completed_by={"id": 1, "email": "a@example.org"})], True, ""),
        ([annotation(1, "correct", updated_at=None)], True, ""),
        ([annotation(1, "correct", updated_at="2026-11-29T10:00:00")], True, ""),
        ([annotation(1, "correct", updated_at="2999-01-01T00:00:00Z")], "none", "in the future"),
        ([annotation(1, "correct", updated_at="soon", created_at="soon")], "none", "without a time"),
        ([annotation(1, "correct", updated_at=7)], "none", "without a time"),
        ([annotation(1, None)], "none", "without a verdict"),
        ([annotation(1, "maybe")], "none", "does not have"),
        (
            [annotation(1, "correct", result=annotation(1, "correct")["result"] * 2)],
            "none",
            "or with several",
        ),
        ([annotation(1, "correct", result={"verdict": "correct"})], "none", "without a verdict"),
        (
            [annotation(1, "correct", result=[{"from_name": "verdict", "value": "x"}])],
            "none",
            "without a verdict",
        ),
        (
            [annotation(1, "correct", result=[{"from_name": ["v"], "value": {"choices": [7]}}])],
            "none",
            "verdict",
        ),
        (
            [annotation(1, "correct", result=[*annotation(1, "correct")["result"], {"type": "relation"}])],
            True,
            "",
        ),
        ([annotation(1, "correct", completed_by=None)], "none", "without a user"),
        ([annotation(1, "correct", completed_by=True)], "none", "without a user"),
        ([annotation(1, "correct", updated_by=2)], "none", "somebody else changed"),
        ([annotation(1, "correct", parent_annotation=7)], "none", "copied from another"),
    ],
)
def test_an_annotation_is_a_mark_or_left_out_with_the_reason(run, tasks, given, human, reason):
    taken = record_export(run, [export(tasks, run / "e.json", {ids(tasks)[0]: given})])
    assert [mark.human for mark in marks(run)] == ([] if human == "none" else [human])
    assert list(taken.left_out.values()) == ([1] if reason else [])
    assert all(reason in one for one in taken.left_out)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (90, 90.0),
        (86_400, 86_400.0),
        *((absurd, None) for absurd in (None, -5, 0, 1e9, float("nan"), float("inf"), "90", True, [90])),
    ],
)
def test_a_time_that_is_missing_or_absurd_is_none(run, tasks, given, seconds):
    one = annotation(1, "correct", lead_time=given)
    record_export(run, [export(tasks, run / "e.json", {ids(tasks)[0]: [one]})])
    assert [mark.seconds for mark in marks(run)] == [seconds]


def test_a_proof_that_was_open_overnight_counts_as_an_hour(run, tasks):
    said = {
        proof: [annotation(1, "correct", lead_time=seconds)]
        for proof, seconds in zip(ids(tasks), (60, 120, 50_000), strict=False)
    }
    record_export(run, [export(tasks, run / "e.json", said)])
    told = json.loads(CliRunner().invoke(app, ["audit", "status", str(run), "--json", "-"]).output)
    (reader,) = told["readers"]["people"]
    assert (reader["hours"], reader["minutes"], reader["timed"]) == (1.05, 2.0, 3)


def changed(tasks: Path, **data: object) -> list[dict]:
    return [
        {"id": 1, "data": one | data, "annotations": [annotation(1, "correct")]} for one in tasks_of(tasks)
    ]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda tasks: changed(tasks, draw="0" * 20), "no task is of a draw of this run"),
        (lambda tasks: changed(tasks, draw=["x"]), "no task is of a draw of this run"),
        (lambda tasks: changed(tasks, proof_id="0" * 20), "no task is of a draw of this run"),
        (
            lambda tasks: changed(tasks, proof="Another."),
            r"\(60 tasks whose text was changed after the draw\)",
        ),
        (lambda tasks: changed(tasks, round=3), "no task is of a draw of this run"),
        (
            lambda tasks: [{"id": 1, "data": {"text": "x"}, "annotations": []}],
            "no task is of a draw of this run",
        ),
        (
            lambda tasks: [
                {**data, "id": 1, "verdict": "correct", "annotator": 1, "annotation_id": 1, "lead_time": 9.0}
                for data in tasks_of(tasks)
            ],
            "JSON-MIN",
        ),
        (lambda tasks: [{"data": data} for data in tasks_of(tasks)], "no task with its annotations"),
        (lambda tasks: [{"data": data, "annotations": [3]} for data in tasks_of(tasks)], "no task with its"),
        (lambda tasks: [], "has no task"),
        (lambda tasks: {"detail": "Not found."}, "no task with its annotations"),
        (lambda tasks: ["x"], "not an object"),
    ],
)
def test_a_file_that_is_no_export_of_a_draw_records_nothing(run, tasks, made, says):
    (run / "e.json").write_text(json.dumps(made(tasks)))
    with pytest.raises(DataError, match=says):
        record_export(run, [run / "e.json"])
    assert not (run / "marks").exists()


def test_a_file_that_cannot_be_read_keeps_the_other_from_being_recorded(run, tasks):
    good = export(tasks, run / "e.json", by(tasks, {1: "correct"}))
    for number, text in enumerate(("[" * 100_000, '[{"data"', "\ud800", "")):
        bad = run / f"bad{number}.json"
        bad.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(DataError):
            record_export(run, [good, bad])
    assert not (run / "marks").exists()


def test_a_task_that_is_not_of_the_draw_is_left_out_beside_those_that_are(run, tasks):
    file = export(tasks, run / "e.json", by(tasks, {1: "correct"}))
    rows = json.loads(file.read_text())
    rows[0]["data"]["proof"] += " "
    rows[3]["data"]["a column of mine"] = "x"
    rows[1]["data"] = {"text": "a task of somebody else's"}
    file.write_text(json.dumps(rows))
    labels = list(read_rows(run / "labels", Label))
    gone = rows[2]["data"]["proof_id"]
    write_part(run / "labels" / "0.parquet", Label, [one for one in labels if one.proof_id != gone])
    taken = record_export(run, [file])
    assert taken.recorded == 57
    assert taken.left_out == {
        "tasks whose text was changed after the draw": 1,
        "tasks that this run has not drawn": 1,
        "tasks whose proof has no label any more": 1,
    }


def test_an_export_of_an_earlier_draw_is_taken_only_when_that_is_meant(run):
    draw_tasks(run, run / "a.json", pilot=0.5)
    draw_tasks(run, run / "b.json", pilot=1)
    assert len(ids(run / "a.json")) == 30
    early = export(run / "a.json", run / "e.json", by(run / "a.json", {1: "correct"}))
    with pytest.raises(DataError, match=r"has drawn again at .* or add --older"):
        record_export(run, [early])
    assert not (run / "marks").exists()
    assert record_export(run, [early], older=True).recorded == 30
    late = export(run / "b.json", run / "f.json", by(run / "b.json", {1: "correct"}))
    assert record_export(run, [early, late]).unchanged == 30
    # the same draw again is no later one
    draw_tasks(run, run / "c.json", pilot=1)


def test_the_same_draw_has_the_same_tasks(run, tasks):
    draw_tasks(run, run / "again.json", pilot=1)
    assert (run / "again.json").read_text() == tasks.read_text()
    assert len(list((run / "draws").iterdir())) == 1


def test_a_person_decides_no_dispute_of_their_own(run, tasks):
    said = {ids(tasks)[0]: [annotation(1, "correct"), annotation(2, "incorrect")]}
    record_export(run, [export(tasks, run / "e.json", said)])
    draw_tasks(run, run / "third.json", third=True, pilot=1)
    third = export(
        run / "third.json", run / "f.json", by(run / "third.json", {1: "incorrect", 3: "correct"}, 9)
    )
    taken = record_export(run, [third])
    assert taken.recorded == 1
    assert list(taken.left_out) == ["marks by a person who had read the proof, or seen the others' reasons"]
    # nor does a third reader become a blind one afterwards
    late = {ids(tasks)[0]: [annotation(3, "incorrect", 20)]}
    assert record_export(run, [export(tasks, run / "e.json", late)], older=True).recorded == 0
    assert read_audit(run).marks[ids(tasks)[0]].human is True


def test_names_are_kept_for_good(run, tasks):
    file = export(tasks, run / "e.json", by(tasks, {1: "correct"}))
    record_export(run, [file])
    with pytest.raises(DataError, match="recorded before as those of 'user 1'"):
        record_export(run, [file], {"1": "anna"})
    assert record_export(run, [file], {"7": "anna"}).absent == ["7"]
    with pytest.raises(DataError, match="a name of their own"):
        record_export(run, [file], {"1": "anna", "2": "anna"})
    with pytest.raises(DataError, match="the user 2 is called 'user 2'"):
        record_export(run, [file], {"1": "user 2"})
    for names in ({"1": "User 1"}, {"7": "anna", "8": "Anna"}):
        with pytest.raises(DataError, match="only in case or spaces"):
            record_export(run, [file], names)
    draw_sheet(run, run / "s.csv", pilot=1, seed=1)
    with pytest.raises(DataError, match="only in case or spaces"):
        record_sheet(run, run / "s.csv", "USER  1")
    assert len(marks(run)) == 60


@pytest.mark.parametrize("cut", [False, True])
def test_a_sheet_whose_ids_moved_against_the_proofs_records_nothing(run, cut):
    """As after sorting one column; a proof that a spreadsheet cut, or whose spaces it changed, is the same."""
    long = Proof(problem_id="p", source="S", method="proof", model="c", text="=x " * 20_000)
    labels, proofs = list(read_rows(run / "labels", Label)), list(read_rows(run / "proofs", Proof))
    long = replace(long, problem_id=proofs[0].problem_id)
    write_part(run / "proofs" / "1.parquet", Proof, [long])
    write_part(run / "labels" / "1.parquet", Label, [replace(labels[0], proof_id=long.id, slice=long.slice)])
    draw_sheet(run, run / "s.csv", pilot=1)
    with (run / "s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, other in zip(rows, [*rows[1:], rows[0]] if not cut else rows, strict=True):
        row |= {"right": "yes", "proof": other["proof"][:32_767].replace("\n", "\r\n ")}
    with (run / "s.csv").open("w", newline="") as file:
        csv.DictWriter(file, rows[0]).writeheader()
        csv.DictWriter(file, rows[0]).writerows(rows)
    if cut:
        assert record_sheet(run, run / "s.csv", "A").marks == 61
    else:
        with pytest.raises(DataError, match="row 2: the proof is not the text of"):
            record_sheet(run, run / "s.csv", "A")
        assert not (run / "marks").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["sheet.csv"],
        ["sheet.csv", "--auditor", "A", "--auditor", "B"],
        ["sheet.csv", "other.csv", "--auditor", "A"],
        ["sheet.csv", "e.json", "--auditor", "A"],
        ["e.json", "--auditor", "anna"],
        ["e.json", "--auditor", "1=anna", "--auditor", "1=bob"],
    ],
)
def test_files_and_names_that_do_not_fit_are_refused(run, tasks, arguments):
    told = CliRunner().invoke(app, ["audit", "record", str(run), *arguments])
    assert (told.exit_code, told.output.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "text", ["", "[1]", "{}", '{"id": "x", "time": "", "third": false, "tasks": []}', "[" * 9999]
)
def test_a_draw_that_was_damaged_is_named(run, tasks, text):
    (path,) = (run / "draws").iterdir()
    path.write_text(text)
    with pytest.raises(DataError, match=f"{path.name} cannot be read as a draw"):
        record_export(run, [export(tasks, run / "e.json", by(tasks, {1: "correct"}))])


def test_files_that_are_there_are_not_overwritten(run, tasks):
    with pytest.raises(DataError, match="exists"):
        draw_tasks(run, tasks)
    (run / "x.xml").write_text("mine")
    with pytest.raises(DataError, match="exists"):
        draw_tasks(run, run / "x.json", pilot=1)
    with pytest.raises(DataError, match=r"does not end in \.json"):
        draw_tasks(run, run / "x.csv", pilot=1)
    with pytest.raises(DataError, match="make it first"):
        draw_tasks(run, run / "no" / "x.json", pilot=1)
    assert (run / "x.xml").read_text() == "mine"


def test_sheets_have_a_third_reader_too(run):
    """Right, wrong, then wrong; right and cannot tell, then cannot tell: the second is left without an answer."""
    draw_sheet(run, run / "a.csv", pilot=1)
    for auditor, words in (("A", ("yes", "yes")), ("B", ("no", "cannot tell"))):
        fill(run / "a.csv", lambda number, _, words=words: words[number] if number < 2 else "")
        record_sheet(run, run / "a.csv", auditor)
    assert read_audit(run).marks == {}
    call = ["audit", "draw", str(run), "--pilot", "1", "--out"]
    assert "2 proofs on which readers differ" in CliRunner().invoke(app, [*call, str(run / "b.csv")]).output
    told = CliRunner().invoke(app, [*call, str(run / "c.csv"), "--third"]).output
    assert told.startswith("2 proofs to read")
    with (run / "c.csv").open(newline="") as file:
        earlier = {row["proof_id"]: row["earlier"] for row in csv.DictReader(file)}
    assert {tuple(sorted(re.findall("[a-z][a-z ]+", one))) for one in earlier.values()} == {
        ("correct", "incorrect"),
        ("cannot tell", "correct"),
    }
    fill(run / "c.csv", lambda _, row: "?" if "cannot" in row["earlier"] else "no")
    with pytest.raises(DataError, match="A has read this proof before"):
        record_sheet(run, run / "c.csv", "A")
    assert record_sheet(run, run / "c.csv", "C").marks == 2
    assert [mark.human for mark in read_audit(run).marks.values()] == [False]
    assert len(draw_sheet(run, run / "d.csv", pilot=1, third=True).proofs) == 0
    again = draw_sheet(run, run / "e.csv", pilot=1)
    assert (len(again.proofs), again.disputed) == (58, 0)
    assert not again.proofs.keys() & earlier.keys()
    assert sum(read_audit(run).sizes.values()) == 59
    told = CliRunner().invoke(app, ["audit", "status", str(run)]).output
    assert "left without an answer, and not counted: 1" in told
