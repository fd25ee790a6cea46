"""The pilot of an audit: all slices from the same few questions, round after round."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from audit_cases import fill, pilot_run, write_run
from typer.testing import CliRunner

from pv_data.audit import Rounds, pilot_questions
from pv_data.cli import app
from pv_data.ids import PILOT, place
from pv_data.records import Problem, Proof
from pv_data.run.audit import draw_sheet, record_sheet, standing
from pv_data.table import read_rows


def questions_of(run: Path, sheet: Path) -> set[str]:
    by_proof = {proof.id: proof.problem_id for proof in read_rows(run / "proofs", Proof)}
    with sheet.open(newline="") as file:
        return {by_proof[row["proof_id"]] for row in csv.DictReader(file)}


def test_all_slices_are_read_on_the_same_twentieth_of_the_questions(tmp_path):
    problems = pilot_run(tmp_path, models="abcdef")
    drawn = draw_sheet(tmp_path, tmp_path / "sheet.csv", seed=2)
    pilot = set(pilot_questions([problem.id for problem in problems], 0.05, seed=2))
    assert (len(drawn.proofs), drawn.short) == (6 * 30, ())
    assert questions_of(tmp_path, tmp_path / "sheet.csv") == pilot
    assert (drawn.touched, drawn.questions, len(pilot)) == (5, 100, 5)


def test_what_is_generated_for_a_part_of_the_questions_is_the_pilot_s():
    ids = [f"question {n}" for n in range(400)]
    generated = {one for one in ids if place(PILOT, 7, one) < 0.05}
    pilot = set(pilot_questions(ids, 0.05, seed=7))
    assert generated <= pilot or pilot <= generated
    assert len(generated & pilot) > 10


def test_each_source_has_a_pilot_of_its_own(tmp_path):
    problems = [
        Problem(source=source, native_id=str(n), text=f"Prove {n}.")
        for source, number in (("S", 60), ("T", 10))
        for n in range(number)
    ]
    proofs = [
        Proof(problem_id=problem.id, source=problem.source, method="proof", model="m", text=f"{n}")
        for problem in problems
        for n in range(40)
    ]
    write_run(tmp_path, problems, proofs)
    assert draw_sheet(tmp_path, tmp_path / "sheet.csv").touched == 3 + 1
    drawn = questions_of(tmp_path, tmp_path / "sheet.csv")
    assert len(drawn & {problem.id for problem in problems if problem.source == "T"}) == 1


def test_later_rounds_go_on_in_the_same_pilot(tmp_path):
    """Of 800 proofs a slice: 20, 24, then 40."""
    pilot_run(tmp_path)
    rounds = Rounds(fractions=(0.025, 0.03, 0.05), least=1)
    seen: set[str] = set()
    for number, due in enumerate((20, 24, 40), start=1):
        sheet = tmp_path / f"{number}.csv"
        drawn = draw_sheet(tmp_path, sheet, rounds=rounds)
        assert set(drawn.proofs.values()) == {number}
        assert not seen & set(drawn.proofs)
        seen |= set(drawn.proofs)
        assert (len(seen), drawn.touched) == (2 * due, 5)
        fill(sheet, lambda *_: "yes")
        record_sheet(tmp_path, sheet, "A")
    assert {state.verdict for state in standing(tmp_path, rounds).values()} == {"accept"}


def test_a_pilot_that_is_too_small_says_so_and_a_larger_one_goes_on(tmp_path):
    pilot_run(tmp_path, each=3)
    call = ["audit", "draw", str(tmp_path), "--out"]
    told = CliRunner().invoke(app, [*call, str(tmp_path / "a.csv")]).output
    assert "30 proofs to read" in told
    assert "S/proof/a: round 1 needs 30 more proofs, and a pilot of 0.05 has 15; --pilot 0.1 has them" in told
    assert "5 of 100 questions are marked: they go to the test set" in told
    fill(tmp_path / "a.csv", lambda *_: "yes")
    record_sheet(tmp_path, tmp_path / "a.csv", "A")
    told = CliRunner().invoke(app, [*call, str(tmp_path / "b.csv"), "--pilot", "0.1"]).output
    assert "30 proofs to read" in told
    assert "needs" not in told
    assert "with the proofs read before, 10 of 100 questions" in told
    assert len(questions_of(tmp_path, tmp_path / "b.csv")) == 5
    assert "the proofs read before" not in told.replace("with the proofs read before", "")
    fill(tmp_path / "b.csv", lambda number, _: "yes" if number % 3 else "")
    record_sheet(tmp_path, tmp_path / "b.csv", "A")
    told = CliRunner().invoke(app, [*call, str(tmp_path / "c.csv")]).output
    assert "no file was written: all proofs of a pilot of 0.05 have been read" in told
    assert "the proofs read before are of a pilot of 0.1 (with --seed 0): give the --pilot and --seed" in told


def test_an_audit_of_every_question_is_warned_of(tmp_path):
    pilot_run(tmp_path, questions=10, each=10)
    told = CliRunner().invoke(
        app, ["audit", "draw", str(tmp_path), "--out", str(tmp_path / "a.csv"), "--pilot", "1"]
    )
    assert "10 of 10 questions" in told.output
    assert "nothing is left for training" in told.output


@pytest.mark.parametrize("pilot", ["0", "1.5"])
def test_a_pilot_is_a_part(tmp_path, pilot):
    pilot_run(tmp_path, questions=2)
    told = CliRunner().invoke(
        app, ["audit", "draw", str(tmp_path), "--out", str(tmp_path / "a.csv"), "--pilot", pilot]
    )
    assert told.exit_code == 1
    assert "pilot is" in told.output
    assert not (tmp_path / "a.csv").exists()
