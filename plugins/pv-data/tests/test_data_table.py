"""Rows go to Parquet and come back the same; what is not a table of ours is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pv_data.records import Aside, AuditMark, Judgment, Label, Origin, Problem, Proof, Qpc
from pv_data.table import KINDS, read_rows, schema, write_part
from pv_rl.errors import DataError

PROBLEM = Problem(source="Putnam", native_id="2001 A1", text="Prove that $a*(b*a)=b$.")
PROOF = Proof(
    problem_id=PROBLEM.id, source="Putnam", method="rephrase", model="r1", text="By the law.", known=True
)
ORIGIN = Origin(
    template="judge@ab", model="r1", sampling='{"temperature": 0.6}', sample=2, usd=0.25, prompt_tokens=7
)
ROWS = [
    PROBLEM,
    PROOF,
    Judgment(
        proof_id=PROOF.id,
        judge="r1",
        conditions=(True, True, False, True),
        stated=True,
        verdict=False,
        text="{}",
        origin=ORIGIN,
    ),
    Label(
        proof_id=PROOF.id,
        problem_id=PROBLEM.id,
        slice=PROOF.slice,
        value=None,
        rule="unanimous 2 of 2",
        votes=(True, False),
        judges=("r1", "mini"),
        known=True,
    ),
    AuditMark(
        proof_id=PROOF.id,
        problem_id=PROBLEM.id,
        slice=PROOF.slice,
        auditor="A",
        round=1,
        label=True,
        human=None,
        seconds=90.5,
    ),
    Qpc(
        problem_id=PROBLEM.id,
        proof_id=PROOF.id,
        problem=PROBLEM.text,
        proof=PROOF.text,
        label=True,
        rule="human",
        slice=PROOF.slice,
        split="train",
    ),
    Aside(stage="filter", row="x.jsonl:3", reason="empty proof", content="\N{BELL}"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_a_row_comes_back_as_it_was(row, tmp_path):
    assert write_part(tmp_path / "part.parquet", type(row), [row, row]) == 2
    assert list(read_rows(tmp_path, type(row))) == [row, row]


def test_every_kind_is_tried():
    assert {row.kind for row in ROWS} == set(KINDS)


def test_ids_are_those_of_the_content_and_the_same_everywhere():
    assert PROBLEM.id == Problem(source="Putnam", native_id="other", text=PROBLEM.text, licence="x").id
    assert PROBLEM.id != replace(PROBLEM, text=PROBLEM.text + " ").id
    assert PROOF.id == replace(PROOF, origin=ORIGIN, known=None).id
    assert PROOF.id != replace(PROOF, model="mini").id
    assert PROBLEM.id == "0c2ed5d2d52c2639158f"  # of another run, on another machine


def test_half_of_a_surrogate_pair_does_not_change_the_id(tmp_path):
    row = replace(PROBLEM, text="a \ud83d b")
    write_part(tmp_path / "part.parquet", Problem, [row])
    (back,) = read_rows(tmp_path, Problem)
    assert back.text == "a ? b"
    assert back.id == row.id


def test_a_part_that_cannot_be_written_leaves_nothing(tmp_path):
    def rows():
        yield PROBLEM
        raise RuntimeError("the disk went away")

    with pytest.raises(RuntimeError):
        write_part(tmp_path / "part.parquet", Problem, rows())
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_refused(tmp_path):
    write_part(tmp_path / "proofs.parquet", Proof, [PROOF])
    with pytest.raises(DataError, match="holds rows of kind 'proof', and 'problem' was expected"):
        list(read_rows(tmp_path / "proofs.parquet", Problem))
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(DataError, match=r"text\.parquet cannot be read as a table of problem rows"):
        list(read_rows(tmp_path / "text.parquet", Problem))
    newer = schema(Problem).with_metadata({"pv_data.kind": "problem", "pv_data.version": "2"})
    pq.write_table(pa.Table.from_pylist([], schema=newer), tmp_path / "newer.parquet")
    with pytest.raises(DataError, match="of version 2, and this pv-data knows up to 1"):
        list(read_rows(tmp_path / "newer.parquet", Problem))


def test_a_row_that_somebody_edited_is_refused(tmp_path):
    write_part(tmp_path / "part.parquet", Problem, [PROBLEM])
    table = pq.read_table(tmp_path / "part.parquet")
    changed = table.set_column(
        table.schema.get_field_index("text"), schema(Problem).field("text"), [["2 + 2 = 5"]]
    )
    pq.write_table(changed, tmp_path / "part.parquet")
    with pytest.raises(DataError, match="has been changed since it was written"):
        list(read_rows(tmp_path, Problem))


def test_a_field_that_is_new_has_its_default_in_an_old_file(tmp_path):
    write_part(tmp_path / "part.parquet", Problem, [PROBLEM])
    table = pq.read_table(tmp_path / "part.parquet").drop_columns(["url", "split"])
    pq.write_table(table, tmp_path / "part.parquet")
    assert list(read_rows(tmp_path, Problem)) == [PROBLEM]
    pq.write_table(table.drop_columns(["text"]), tmp_path / "part.parquet")
    with pytest.raises(DataError, match="has no column 'text'"):
        list(read_rows(tmp_path, Problem))


def test_a_bit_that_was_flipped_on_the_disk_is_seen(tmp_path):
    path = tmp_path / "part.parquet"
    write_part(
        path, Problem, [replace(PROBLEM, text=f"{PROBLEM.text} {n}", native_id=str(n)) for n in range(50)]
    )
    raw, rows, seen = path.read_bytes(), list(read_rows(path, Problem)), 0
    for place in range(4, len(raw) // 2, 7):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        try:
            assert list(read_rows(path, Problem)) == rows
        except DataError:
            seen += 1
    assert seen > 100
