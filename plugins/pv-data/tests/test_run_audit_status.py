"""What the status, the card and the export say of an audit."""

from __future__ import annotations

import io
import json
import random
import re
import shlex
from pathlib import Path

import pytest
from audit_cases import fill, pilot_run, write_run
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from rich.console import Console
from typer.testing import CliRunner

from pv_data.audit import lower_bound
from pv_data.cli import app
from pv_data.records import Problem, Proof
from pv_data.run.audit import draw_sheet, record_sheet, standing
from pv_data.run.config import RunConfig, Source, Split
from pv_data.run.finalize import discard_override, finalize
from pv_data.table import read_rows


@pytest.mark.parametrize("command", ["draw {run} --out {run}/a.csv", "status {run}"])
def test_an_audit_of_a_run_without_a_panel_names_the_setting(command, tmp_path):
    found = CliRunner().invoke(app, ["audit", *shlex.split(command.format(run=tmp_path))])
    assert found.exit_code == 1
    assert "Set `panel` in its config" in " ".join(found.output.split())


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
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    cells = {row[0]: row[1:] for row in rows}  # of the later table, where a name is in both
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


def typed(line: str) -> list[str]:
    """The slices that Hydra reads when the line is typed into a shell."""
    (override,) = shlex.split(line)
    value = OverridesParser.create().parse_override(override).value()
    return OmegaConf.to_container(OmegaConf.create({"value": value}), resolve=True)["value"]  # type: ignore[index]


def test_the_setting_for_discarded_slices_can_be_typed_whatever_their_names_are():
    assert discard_override(["S/proof/b", "S/proof/-"]) == "'split.discarded=[S/proof/b,S/proof/-]'"
    assert typed(discard_override(["S/proof/m (high), v2", "S/it's/m"])) == [
        "S/proof/m (high), v2",
        "S/it's/m",
    ]
    letters = random.Random(0)
    for _ in range(200):
        names = [
            "S/proof/" + "".join(letters.choices("ab ,()'\"\\$[]{}=:;|*?~#!%@+-\té0", k=length))
            for length in (1, 4, 9)
        ]
        assert typed(discard_override(names)) == names


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


def exported(run: Path, **split) -> tuple[str, dict[str, list[str]], str]:
    """What the export says, the card's lines of the audit by slice, and the card."""
    console = Console(file=io.StringIO(), width=200)
    config = RunConfig(
        run_dir=str(run), sources=(Source(kind="table", path="x"),), split=Split(test=0, **split)
    )
    finalize(run, config, console)
    card = (run / "export" / "dataset" / "README.md").read_text()
    lines = card.partition("## Audit")[2].partition("## Who wrote")[0].splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    return console.file.getvalue(), {name: rest for name, *rest in cells}, card


def test_the_card_says_of_each_slice_what_its_audit_came_to(tmp_path):
    """a is accepted, b fails, c is open, d is not read; 30 of each slice's 300 proofs, of 10 of the 100 questions."""
    pilot_run(tmp_path, models="abcd", each=3)
    draw_sheet(tmp_path, tmp_path / "a.csv", pilot=0.1)
    model = {proof.id: proof.model for proof in read_rows(tmp_path / "proofs", Proof)}
    said = {"a": "yes", "b": "no", "c": "yes", "d": ""}
    fill(
        tmp_path / "a.csv",
        lambda number, row: (
            "" if model[row["proof_id"]] == "c" and number % 2 else said[model[row["proof_id"]]]
        ),
    )
    record_sheet(tmp_path, tmp_path / "a.csv", "A")
    checked = standing(tmp_path)["S/proof/c"].checked
    told, lines, card = exported(tmp_path)
    assert lines["S/proof/a"][:3] == ["accepted", "30 of 30", f"{lower_bound(30, 30, population=300):.3f}"]
    assert lines["S/proof/b"][:2] == ["failed", "0 of 30"]
    assert lines["S/proof/c"][:2] == ["open", f"{checked} of {checked}"]
    assert lines["S/proof/d"] == ["not audited", "-", "-", "-", "-", "270"]
    assert [lines[f"S/proof/{name}"][-1] for name in "abc"] == ["270"] * 3
    assert lines["all audited"][1] == f"{30 + checked} of {60 + checked}"
    assert lines["all accepted, labelled correct"][1] == "30 of 30"
    assert lines["all accepted, labelled wrong"][1] == "-"
    assert (
        "- Of 1,080 labels of the panel in train, 270 are of slices that an audit accepted, 270 are of slices that "
        "have an audit without a verdict, 270 are of slices that failed their audit, 270 are of slices that nobody "
        "audited." in card
    )
    assert "10 of 100 questions have a mark and are held out" in told
    assert "1 slice failed, and are in the set; leave them out: 'split.discarded=[S/proof/b]'" in told
    assert "270 labels in train are of slices that are still open" in told
    told, lines, _ = exported(tmp_path, discarded=("S/proof/b",))
    assert (lines["S/proof/b"][0], lines["S/proof/b"][-1]) == ("failed", "left out")
    assert "leave them out" not in told
    assert "discarded: 270 labels of the panel removed by split.discarded." in told
    told, _, _ = exported(tmp_path, discarded=[f"S/proof/{name}" for name in "abcd"])
    assert (
        "nothing is left for training: it had labels of the panel only, all in slices of split.discarded"
        in told
    )
    assert "draw an audit from fewer questions" not in told


def test_an_audit_that_leaves_nothing_for_training_is_said_so(tmp_path):
    run = tmp_path
    pilot_run(run, questions=1, each=40)
    draw_sheet(run, run / "sheet.csv")
    fill(run / "sheet.csv", lambda *_: "yes")
    record_sheet(run, run / "sheet.csv", "A")
    told, _, _ = exported(run)
    assert "1 of 1 question have a mark" in told
    assert "nothing is left for training; draw an audit from fewer questions" in told
    told, _, _ = exported(run, hold_out_audited=False)
    assert "held out" not in told
    assert "nothing is left" not in told


def test_a_set_that_nobody_audited_says_so(tmp_path):
    pilot_run(tmp_path, questions=2)
    told, lines, card = exported(tmp_path)
    assert "audit" not in told
    assert lines == {}
    assert "People have checked no label of the panel: every slice is unaudited." in card
