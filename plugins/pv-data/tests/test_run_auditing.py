"""The audit of a run: sheets without labels, marks that are understood or refused, slices that pass or fail."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from audit_cases import fill, write_run
from typer.testing import CliRunner

from pv_data.audit import read_audit, weigh
from pv_data.cli import app
from pv_data.records import AuditMark, Label, Problem, Proof
from pv_data.run import reading_list
from pv_data.run.audit import draw_sheet, record_sheet, standing
from pv_data.table import read_rows, write_part
from pv_rl.errors import DataError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two slices of 100 labelled proofs each, and one proof on which the judges do not agree."""
    problem = Problem(source="S", native_id="1", text="Prove it.")
    proofs = [
        Proof(problem_id=problem.id, source="S", method="proof", model=model, text=f"=Proof {n} by {model}")
        for model in ("a", "b")
        for n in range(100)
    ]
    write_run(tmp_path, [problem], proofs, unlabelled=1)
    return tmp_path


def test_a_sheet_has_what_is_to_be_read_and_no_label(run):
    assert len(draw_sheet(run, run / "sheet.csv").proofs) == 60
    with (run / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"proof_id", "round", "problem", "proof", "right", "note"}
    by = [row["proof"][-1] for row in rows]
    assert set(by) == {"a", "b"}
    assert by != sorted(by)  # nobody sees by the place which slice a proof is of
    assert {row["right"] for row in rows} == {""}
    assert all(row["proof"].startswith("'=Proof") for row in rows)  # or a spreadsheet would compute it


@pytest.mark.parametrize("column", ["right", "note"])
def test_a_sheet_is_overwritten_unless_somebody_wrote_in_it(run, column):
    sheet = run / "sheet.csv"
    draw_sheet(run, sheet)
    assert len(draw_sheet(run, sheet, seed=1).proofs) == 60
    empty = sheet.read_text()
    fill(sheet, lambda number, _: "?" if number == 3 else "")
    if column == "note":
        sheet.write_text(sheet.read_text().replace(",?,", ",,?"))
    written = sheet.read_text()
    assert written.count("?") == 1
    for text in (written, "a,b\n", empty.replace(empty.splitlines()[1][:16], "f" * 16)):
        sheet.write_text(text)
        with pytest.raises(DataError, match="exists, and is no sheet of this run without marks"):
            draw_sheet(run, sheet)
        assert sheet.read_text() == text


def command(*given: object) -> str:
    done = CliRunner().invoke(app, ["audit", *map(str, given)])
    return " ".join(done.output.split())


def test_no_sheet_is_written_where_nothing_is_to_be_read(run):
    sheet, none = run / "sheet.csv", run / "none.csv"
    draw = ("draw", run, "--out", none)
    assert "no file was written: no proof waits for a third reader" in command(*draw, "--third")
    draw_sheet(run, sheet)
    fill(sheet, lambda *_: "yes")
    record_sheet(run, sheet, "A")
    assert "no proofs to read; no file was written: all slices are accepted or discarded" in command(*draw)
    assert not none.exists()


def test_what_one_person_cannot_tell_is_for_another_and_a_mark_is_replaced_aloud(run):
    sheet = run / "sheet.csv"
    draw_sheet(run, sheet)
    fill(sheet, lambda number, _: "cannot tell" if number < 2 else "y")
    record = ("record", run, sheet, "--auditor", "A")
    assert command(*record) == "60 marks recorded"
    told = command("draw", run, "--out", run / "again.csv")
    assert told.startswith("2 proofs to read in")
    assert "2 of these proofs were read before and not settled (" in told
    assert "): give them to another person" in told
    fill(sheet, lambda number, _: "N" if number < 1 else "cannot tell" if number < 2 else "yes")
    assert command(*record) == "60 marks recorded; 1 mark replaced"


def test_all_wrong_rows_of_a_sheet_are_listed(run):
    sheet = run / "sheet.csv"
    draw_sheet(run, sheet)
    fill(sheet, lambda number, _: "yes" if number < 3 else "yse" if number < 6 else "")
    said = "right is 'yse'; give yes, no or cannot tell"
    told = command("record", run, sheet, "--auditor", "A")
    assert f"3 rows are wrong, and nothing was recorded: row 5: {said} row 6: {said} row 7: {said}" in told
    fill(sheet, lambda number, _: "yse" if number < 13 else "yes")
    told = command("record", run, sheet, "--auditor", "A")
    assert told.endswith("row 11: " + said + " and 3 more")
    assert "round" not in told
    assert not (run / "marks").exists()


def test_slices_are_accepted_and_discarded_by_what_people_say(run):
    """Of 30, all right in slice a; in slice b 20, which is below the first gate of 75%."""
    draw_sheet(run, run / "sheet.csv")
    wrong = {"S/proof/b": 10, "S/proof/a": 0}

    def said(_: int, row: dict[str, str]) -> str:
        name = f"S/proof/{row['proof'][-1]}"
        wrong[name] -= 1
        return "no" if wrong[name] >= 0 else "yes"

    fill(run / "sheet.csv", said)
    assert record_sheet(run, run / "sheet.csv", "A").marks == 60
    states = standing(run)
    assert (states["S/proof/a"].verdict, states["S/proof/b"].verdict) == ("accept", "discard")
    assert (states["S/proof/b"].agree, states["S/proof/b"].checked) == (20, 30)
    assert states["S/proof/a"].size == 99  # a proof without a label is none of it
    told = CliRunner().invoke(app, ["audit", "status", str(run)])
    assert told.exit_code == 0
    assert "split.discarded=[S/proof/b]" in told.output
    assert "a label of people or of the source stay" in told.output


def test_a_sheet_may_be_filled_in_little_by_little_and_again(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda number, _: "yes" if number < 7 else "")
    assert record_sheet(run, run / "sheet.csv", "A").marks == 7
    assert len(draw_sheet(run, run / "rest.csv").proofs) == 53
    fill(run / "sheet.csv", lambda number, _: "no" if number < 7 else "")
    assert record_sheet(run, run / "sheet.csv", "A").marks == 7
    assert len(list(read_rows(run / "marks", AuditMark))) == 14
    assert sum(state.checked for state in standing(run).values()) == 7
    assert sum(state.agree for state in standing(run).values()) == 0


def test_two_readers_who_differ_settle_nothing(run):
    draw_sheet(run, run / "sheet.csv")
    for auditor, word in (("A", "yes"), ("B", "no")):
        fill(run / "sheet.csv", lambda number, _, word=word: word if number == 0 else "")
        record_sheet(run, run / "sheet.csv", auditor)
    assert sum(state.checked for state in standing(run).values()) == 0
    drawn = draw_sheet(run, run / "again.csv")
    assert (len(drawn.proofs), drawn.disputed) == (59, 1)


def test_marks_are_held_against_the_labels_of_now(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda *_: "yes")
    record_sheet(run, run / "sheet.csv", "A")
    labels = list(read_rows(run / "labels", Label))
    write_part(run / "labels" / "0.parquet", Label, [replace(one, value=False) for one in labels])
    assert {(state.agree, state.verdict) for state in standing(run).values()} == {(0, "discard")}
    write_part(
        run / "labels" / "0.parquet", Label, [replace(one, value=None) for one in labels[:-3]] + labels[-3:]
    )
    assert sum(state.checked for state in standing(run).values()) <= 3


def test_the_later_word_counts_also_where_the_clock_went_back(run, monkeypatch):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda *_: "yes")
    record_sheet(run, run / "sheet.csv", "A")
    fill(run / "sheet.csv", lambda *_: "no")

    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2020, 1, 1, tzinfo=tz)

    monkeypatch.setattr(reading_list, "datetime", Past)
    record_sheet(run, run / "sheet.csv", "A")
    assert sum(state.agree for state in standing(run).values()) == 0


def test_the_marks_of_a_run_are_there_for_the_statistics(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda number, _: "no" if number < 6 else "yes")
    record_sheet(run, run / "sheet.csv", "A")
    audit = read_audit(run)
    assert audit.sizes == {"S/proof/a": 99, "S/proof/b": 100}
    found = weigh(audit.marks.values(), sizes=audit.sizes)
    assert (found.pooled.agree, found.pooled.checked) == (54, 60)


def test_record_counts_empty_rows_and_refuses_a_sheet_that_is_not_there(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda number, _: "yes" if number else "")

    def told(sheet: str) -> str:
        done = CliRunner().invoke(app, ["audit", "record", str(run), str(run / sheet), "--auditor", "A"])
        return " ".join(done.output.split())

    assert told("sheet.csv") == "59 marks recorded; 1 row is empty"
    fill(run / "sheet.csv", lambda *_: "")
    assert told("sheet.csv") == "0 marks recorded; 60 rows are empty"
    assert "none.csv does not exist" in told("none.csv")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace(",,\r\n", ",maybe,\r\n", 1), r"row 2: right is 'maybe'"),
        (
            lambda text: text.replace(",1,Prove", ",0,Prove", 1).replace(",,\r\n", ",yes,\r\n", 1),
            "row 2: round is '0'",
        ),
        (
            lambda text: text.replace(",1,Prove", ",\u00b2,Prove", 1).replace(",,\r\n", ",yes,\r\n", 1),
            "round is '\u00b2'",
        ),
        (lambda text: (text + text.partition("\r\n")[2]).replace(",,\r\n", ",yes,\r\n"), "more than once"),
        (lambda text: text.replace(",", ";"), "with commas between the cells"),
        (lambda text: "", "has no column"),
        (lambda text: "proof_id,right\r\nx,yes\r\n", "has no column note, problem, proof, round"),
        (
            lambda text: text.replace(text.splitlines()[1][:20], "0" * 20, 1).replace(
                ",,\r\n", ",yes,\r\n", 1
            ),
            "no proof",
        ),
        (lambda text: text.replace('"', "", 1) + '"', "cannot be read as a sheet|no proof of this run"),
    ],
)
def test_a_sheet_that_is_not_understood_records_nothing(run, change, says):
    draw_sheet(run, run / "sheet.csv")
    path = run / "sheet.csv"
    with path.open(newline="") as file:
        text = file.read()
    with path.open("w", newline="") as file:
        file.write(change(text))
    with pytest.raises(DataError, match=says):
        record_sheet(run, path, "A")
    assert not (run / "marks").exists()
