"""From the tables of a run to the whole export."""

from __future__ import annotations

import json
from pathlib import Path

import places
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.export.exporting import ExportSettings, Tables, export
from pv_data.records import Aside, AuditMark, Judgment, Label, Origin, Problem, Proof, Qpc
from pv_data.splits import SplitRules
from pv_data.table import read_rows, write_part
from pv_rl.errors import DataError

SOLUTIONS = places.SHARED / "data" / "gsm8k_solutions"
JUDGES = ("r1", "r1", "mini")
GENERATORS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def votes(number: int, known: bool) -> tuple[bool, ...]:
    """Every fifth proof has one judge against it, every seventh all of them wrong."""
    if number % 7 == 0:
        return (not known,) * 3
    return (known, known, not known if number % 5 == 0 else known)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run over real solutions whose labels are known, with judges whose mistakes are known too."""
    if not SOLUTIONS.exists():
        pytest.skip(f"the real solutions are not there: {SOLUTIONS}")
    folder = tmp_path_factory.mktemp("run")
    lines = (SOLUTIONS / "example_model_solutions.jsonl").read_text().splitlines()[:100]
    problems, proofs, labels, judgments = [], [], [], []
    for number, line in enumerate(map(json.loads, lines)):
        problem = Problem(source="GSM8K", native_id=str(number), text=line["question"], licence="MIT")
        problems.append(problem)
        for generator in GENERATORS:
            answer = line[generator]
            proof = Proof(
                problem_id=problem.id,
                source="GSM8K",
                method="solution",
                model=generator,
                text=answer["solution"],
                known=answer["is_correct"],
                known_by="final answer",
            )
            cast = votes(len(proofs), answer["is_correct"])
            proofs.append(proof)
            labels.append(
                Label(
                    proof_id=proof.id,
                    problem_id=problem.id,
                    slice=proof.slice,
                    value=cast[0] if len(set(cast)) == 1 else None,
                    rule="unanimous 3 of 3",
                    votes=cast,
                    judges=JUDGES,
                    known=proof.known,
                )
            )
            judgments += [
                Judgment(
                    proof_id=proof.id,
                    judge=judge,
                    conditions=(vote,) * 4,
                    stated=vote,
                    verdict=vote,
                    text="{}",
                    origin=Origin(template="check@1", model=judge, sample=sample, usd=0.01),
                )
                for sample, (judge, vote) in enumerate(zip(JUDGES, cast, strict=True))
            ]
    write_part(folder / "problems" / "a.parquet", Problem, problems)
    write_part(folder / "generated" / "a.parquet", Proof, proofs)
    write_part(folder / "labels" / "a.parquet", Label, labels)
    write_part(folder / "judgments" / "a.parquet", Judgment, judgments)
    write_part(folder / "aside" / "a.parquet", Aside, [Aside(stage="filter", row="1", reason="geometry")])
    audited = proofs[0]  # the panel is wrong about it
    mark = AuditMark(
        proof_id=audited.id,
        problem_id=audited.problem_id,
        slice=audited.slice,
        auditor="A",
        round=1,
        label=not audited.known,
        human=bool(audited.known),
    )
    write_part(folder / "marks" / "a.parquet", AuditMark, [mark])
    return folder


def test_everything_is_made_and_agrees(run, tmp_path):
    out = tmp_path / "export"
    done = export(Tables.of_run(run), out, ExportSettings(split=SplitRules(test=0.2)))
    rows = {row.id: row for row in read_rows(out / "qpc", Qpc)}
    assert sum(done.written.rows.values()) == len(rows)
    assert len(rows) + sum(done.left_out.values()) == 400
    assert sum(1 for _ in read_rows(out / "left_out", Aside)) == done.left_out["judges disagree"]
    train = {row.problem_id for row in rows.values() if row.split == "train"}
    test = {row.problem_id for row in rows.values() if row.split == "test"}
    assert train
    assert test
    assert not train & test
    assert not any(row.split == "train" and not row.consistent for row in rows.values())
    assert any(row.split == "test" and not row.consistent for row in rows.values())
    for split in ("train", "test"):
        verl = pq.read_table(out / "verl" / f"{split}.parquet").to_pylist()
        hub = pq.read_table(out / "dataset" / "data" / f"{split}-00000-of-00001.parquet").to_pylist()
        expected = [row.id for row in rows.values() if row.split == split]
        assert [row["extra_info"]["id"] for row in verl] == [row["id"] for row in hub] == expected
        assert all(
            row["reward_model"]["ground_truth"] == str(rows[row["extra_info"]["id"]].label) for row in verl
        )


def test_the_audited_question_is_held_out_with_the_label_of_people(run, tmp_path):
    export(Tables.of_run(run), tmp_path / "export", ExportSettings(split=SplitRules(test=0)))
    (mark,) = read_rows(run / "marks", AuditMark)
    test = [row for row in read_rows(tmp_path / "export" / "qpc", Qpc) if row.split == "test"]
    assert {row.problem_id for row in test} == {mark.problem_id}
    (audited,) = (row for row in test if row.id == mark.proof_id)
    assert (audited.label, audited.rule, audited.votes) == (mark.human, "audit: 1 of 1", (mark.label,) * 3)


def test_the_report_finds_the_mistakes_of_the_judges(run, tmp_path):
    """Of 400 proofs 58 have all judges wrong (every seventh); of the others 68 have one against them (every fifth
    but every thirty-fifth: 80 - 12)."""
    done = export(Tables.of_run(run), tmp_path / "export", ExportSettings())
    unanimous, majority, _ = done.labels.pooled.rules
    assert (unanimous.kept.hits, unanimous.right.hits) == (400 - 68, 400 - 68 - 58)
    assert (majority.kept.hits, majority.right.hits) == (400, 400 - 58)
    card = (tmp_path / "export" / "dataset" / "README.md").read_text()
    assert "Where it is known otherwise (332 labels), 82.5 % of its labels are true" in card
    assert "| judge: r1 | check@1 | r1 | - | {} | 800 | 0 | 0 | 8.00 |" in card
    assert "| filter | geometry | 1 |" in card
    assert f"| export | judges disagree | {done.left_out['judges disagree']} |" in card


def test_the_same_run_gives_the_same_files(run, tmp_path):
    for name in "ab":
        export(Tables.of_run(run), tmp_path / name, ExportSettings())
    first = {
        path.relative_to(tmp_path / "a"): path.read_bytes()
        for path in (tmp_path / "a").rglob("*")
        if path.is_file()
    }
    second = {
        path.relative_to(tmp_path / "b"): path.read_bytes()
        for path in (tmp_path / "b").rglob("*")
        if path.is_file()
    }
    assert first == second


def test_a_run_without_a_label_is_refused_and_leaves_nothing(run, tmp_path):
    tables = Tables(problems=[run / "problems"], proofs=[run / "nothing"])
    with pytest.raises(
        DataError, match="no proof has a label, and there is nothing to export: there is no proof"
    ):
        export(tables, tmp_path / "export", ExportSettings())
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_two_rows_or_two_sources_label_otherwise_is_in_no_split(tmp_path):
    texts = {name: f"Proof {name}: write the two numbers as 2a+1 and 2b+1, and add them." for name in "abcd"}
    problem = "Prove that the sum of two odd numbers is even."
    rows = [("a", True), ("b", True), ("b", False), ("c", True), ("c", True), ("d", True)]
    for file, some in (("one", rows), ("two", [("d", False), ("a", True)])):
        made = [{"problem": problem, "proof": texts[name], "label": label} for name, label in some]
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    config = tmp_path / "c.yaml"
    config.write_text(
        f"run_dir: {tmp_path}/run\n"
        f"sources:\n- {{kind: table, path: {tmp_path}/one.jsonl, name: One}}\n"
        f"- {{kind: table, path: {tmp_path}/two.jsonl, name: Two}}\n"
    )
    done = CliRunner().invoke(app, ["run", str(config)])
    assert done.exit_code == 0, done.output
    kept = [(row.proof[6], row.label, row.slice[:3]) for row in read_rows(tmp_path / "run/export/qpc", Qpc)]
    assert sorted(kept) == [("a", True, "One"), ("a", True, "Two"), ("c", True, "One")]
    left_out = read_rows(tmp_path / "run/export/left_out", Aside)
    assert [row.reason for row in left_out] == ["known labels differ"] * 3
