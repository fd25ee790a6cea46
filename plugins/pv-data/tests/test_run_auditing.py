"""The audit of a run: sheets without labels, marks that are understood or refused, slices that pass or fail."""

from __future__ import annotations

import csv
import json
import random
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from typer.testing import CliRunner

from pv_data.audit import Rounds, lower_bound, pilot_questions, read_audit, weigh
from pv_data.cli import app
from pv_data.records import AuditMark, Label, Problem, Proof
from pv_data.run import auditing
from pv_data.run.auditing import draw_sheet, record_sheet, standing
from pv_data.run.discarding import discarding
from pv_data.table import read_rows, write_part
from pv_rl.errors import DataError


def write_run(folder: Path, problems: list[Problem], proofs: list[Proof], unlabelled: int = 0) -> None:
    """Tables of a run; the judges take all proofs for right, and differ on the first `unlabelled`."""
    labels = [
        Label(
            proof_id=proof.id,
            problem_id=proof.problem_id,
            slice=proof.slice,
            value=True if n >= unlabelled else None,
            rule="unanimous 1 of 1",
            votes=(True,),
            judges=("j",),
        )
        for n, proof in enumerate(proofs)
    ]
    write_part(folder / "problems" / "0.parquet", Problem, problems)
    write_part(folder / "proofs" / "0.parquet", Proof, proofs)
    write_part(folder / "labels" / "0.parquet", Label, labels)


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


def fill(sheet: Path, said) -> None:
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"right": said(number, row)} for number, row in enumerate(rows))


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
    with pytest.raises(DataError, match="is there"):
        draw_sheet(run, run / "sheet.csv")


def test_slices_are_accepted_and_discarded_by_what_people_say(run):
    """Of 30, all right in slice a; in slice b 20, which is below the first gate of 75%."""
    draw_sheet(run, run / "sheet.csv")
    wrong = {"S/proof/b": 10, "S/proof/a": 0}

    def said(_: int, row: dict[str, str]) -> str:
        name = f"S/proof/{row['proof'][-1]}"
        wrong[name] -= 1
        return "no" if wrong[name] >= 0 else "yes"

    fill(run / "sheet.csv", said)
    assert record_sheet(run, run / "sheet.csv", "A") == 60
    states = standing(run)
    assert (states["S/proof/a"].verdict, states["S/proof/b"].verdict) == ("accept", "discard")
    assert (states["S/proof/b"].agree, states["S/proof/b"].checked) == (20, 30)
    assert states["S/proof/a"].size == 99  # a proof without a label is none of it
    told = CliRunner().invoke(app, ["audit", "status", str(run)])
    assert told.exit_code == 0
    assert "split.discarded=[S/proof/b]" in told.output


def test_a_sheet_may_be_filled_in_little_by_little_and_again(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda number, _: "yes" if number < 7 else "")
    assert record_sheet(run, run / "sheet.csv", "A") == 7
    assert len(draw_sheet(run, run / "rest.csv").proofs) == 53
    fill(run / "sheet.csv", lambda number, _: "no" if number < 7 else "")
    assert record_sheet(run, run / "sheet.csv", "A") == 7
    assert len(list(read_rows(run / "marks", AuditMark))) == 14
    assert sum(state.checked for state in standing(run).values()) == 7
    assert sum(state.agree for state in standing(run).values()) == 0


def test_two_readers_who_differ_settle_nothing(run):
    draw_sheet(run, run / "sheet.csv")
    for auditor, word in (("A", "yes"), ("B", "no")):
        fill(run / "sheet.csv", lambda number, _, word=word: word if number == 0 else "")
        record_sheet(run, run / "sheet.csv", auditor)
    assert sum(state.checked for state in standing(run).values()) == 0
    assert len(draw_sheet(run, run / "again.csv").proofs) == 60


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

    monkeypatch.setattr(auditing, "datetime", Past)
    record_sheet(run, run / "sheet.csv", "A")
    assert sum(state.agree for state in standing(run).values()) == 0


def pilot_run(folder: Path, questions: int = 100, models: str = "ab", each: int = 8) -> list[Problem]:
    """Slices of `each` proofs a question."""
    problems = [Problem(source="S", native_id=str(n), text=f"Prove {n}.") for n in range(questions)]
    proofs = [
        Proof(
            problem_id=problem.id,
            source="S",
            method="proof",
            model=model,
            text=f"{n} by {model}: {problem.id}",
        )
        for problem in problems
        for model in models
        for n in range(each)
    ]
    write_run(folder, problems, proofs)
    return problems


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
    assert "5 of 100 questions: these go to the test set" in told
    fill(tmp_path / "a.csv", lambda *_: "yes")
    record_sheet(tmp_path, tmp_path / "a.csv", "A")
    told = CliRunner().invoke(app, [*call, str(tmp_path / "b.csv"), "--pilot", "0.1"]).output
    assert "30 proofs to read" in told
    assert "needs" not in told
    assert "with what was read, 10 of 100 questions" in told
    assert len(questions_of(tmp_path, tmp_path / "b.csv")) == 5


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
    assert told.exit_code == 2
    assert "fraction is" in told.output
    assert not (tmp_path / "a.csv").exists()


def test_status_says_all_that_the_marks_prove(tmp_path):
    """30 of 30 of 300 proofs in a, 24 of 30 in b; 12 of the 30 proofs of c, which is read whole."""
    problems = pilot_run(tmp_path, each=3)
    few = [
        Proof(problem_id=problem.id, source="S", method="proof", model="c", text=f"{n}")
        for problem in problems[:10]
        for n in range(3)
    ]
    old = list(read_rows(tmp_path / "proofs", Proof))
    write_run(tmp_path, problems, [*old, *few])
    draw_sheet(tmp_path, tmp_path / "a.csv", pilot=1)
    model = {proof.id: proof.model for proof in [*old, *few]}
    wrong = {"a": 0, "b": 6, "c": 18}

    def said(_: int, row: dict[str, str]) -> str:
        wrong[model[row["proof_id"]]] -= 1
        return "no" if wrong[model[row["proof_id"]]] >= 0 else "yes"

    fill(tmp_path / "a.csv", said)
    record_sheet(tmp_path, tmp_path / "a.csv", "A")
    call = ["audit", "status", str(tmp_path)]
    told = json.loads(CliRunner().invoke(app, [*call, "--above", "0.8", "--json", "-"]).output)
    a, b, c = (told["slices"][f"S/proof/{name}"]["proven"] for name in "abc")
    assert a["lower"] == lower_bound(30, 30, population=300)
    assert b["lower"] == lower_bound(24, 30, population=300)
    assert a["lower_together"] == lower_bound(30, 30, 1 - 0.1 / 3, population=300)
    assert (c["lower"], c["lower_together"]) == (0.4, 0.4)  # nothing is left to be unsure of
    assert told["audited"]["pooled"]["lower"] == lower_bound(66, 90)
    assert told["audited"]["pooled"]["clustered"]["questions"] > 20
    assert told["audited"]["classes"]["correct"]["checked"] == 90
    assert told["audited"]["classes"]["wrong"]["ratio"] is None
    assert told["accepted"]["pooled"]["checked"] == 30
    assert told["above"] == {"threshold": 0.8, "slices": ["S/proof/a"]}
    text = CliRunner().invoke(app, call).output
    cells = {
        line.split("│")[1].strip(): [one.strip() for one in line.split("│")[2:-1]]
        for line in text.splitlines()
        if "│" in line
    }
    assert cells["S/proof/c"] == [
        "12 of 30",
        "0.400",
        "0.400",
        "-",
        f"12 of 30, {lower_bound(12, 30):.3f}",
        "-",
    ]
    assert cells["all audited"][:3] == ["66 of 90", f"{lower_bound(66, 90):.3f}", "-"]
    assert cells["accepted"][0] == "30 of 30"
    file = tmp_path / "status.json"
    assert CliRunner().invoke(app, [*call, "--json", str(file)]).exit_code == 0
    assert json.loads(file.read_text())["slices"] == told["slices"]


def test_the_marks_of_a_run_are_there_for_the_statistics(run):
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda number, _: "no" if number < 6 else "yes")
    record_sheet(run, run / "sheet.csv", "A")
    audit = read_audit(run)
    assert audit.sizes == {"S/proof/a": 99, "S/proof/b": 100}
    found = weigh(audit.marks.values(), sizes=audit.sizes)
    assert (found.pooled.agree, found.pooled.checked) == (54, 60)


def typed(line: str) -> list[str]:
    """The slices that Hydra reads when the line is typed into a shell."""
    (override,) = shlex.split(line)
    value = OverridesParser.create().parse_override(override).value()
    return OmegaConf.to_container(OmegaConf.create({"value": value}), resolve=True)["value"]  # type: ignore[index]


def test_the_setting_for_discarded_slices_can_be_typed_whatever_their_names_are():
    assert discarding(["S/proof/b", "S/proof/-"]) == "'split.discarded=[S/proof/b,S/proof/-]'"
    assert typed(discarding(["S/proof/m (high), v2", "S/it's/m"])) == ["S/proof/m (high), v2", "S/it's/m"]
    letters = random.Random(0)
    for _ in range(200):
        names = [
            "S/proof/" + "".join(letters.choices("ab ,()'\"\\$[]{}=:;|*?~#!%@+-\té0", k=length))
            for length in (1, 4, 9)
        ]
        assert typed(discarding(names)) == names


def test_status_says_what_to_type_for_a_slice_with_brackets_in_its_name(tmp_path):
    problem = Problem(source="S, 2", native_id="1", text="Prove it.")
    proofs = [
        Proof(problem_id=problem.id, source="S, 2", method="proof", model="m (high)", text=f"Proof {n}")
        for n in range(30)
    ]
    write_run(tmp_path, [problem], proofs)
    draw_sheet(tmp_path, tmp_path / "sheet.csv")
    fill(tmp_path / "sheet.csv", lambda *_: "no")
    record_sheet(tmp_path, tmp_path / "sheet.csv", "A")
    told = CliRunner().invoke(app, ["audit", "status", str(tmp_path)])
    (line,) = (line for line in told.output.splitlines() if "split.discarded" in line)
    assert typed(line.partition(": ")[2]) == ["S, 2/proof/m (high)"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace(",,\r\n", ",maybe,\r\n", 1), r"row 2: right is 'maybe'"),
        (lambda text: text.replace(",1,Prove", ",0,Prove", 1).replace(",,\r\n", ",yes,\r\n", 1), "round '0'"),
        (
            lambda text: text.replace(",1,Prove", ",\u00b2,Prove", 1).replace(",,\r\n", ",yes,\r\n", 1),
            "round '\u00b2'",
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
