"""`pv-data contamination`: which problems of a run stand in a test set."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.records import Problem
from pv_data.run.manifest import write_manifest
from pv_data.table import write_part

TEXT = "Let n be a positive integer. Prove that the sum of the first n odd numbers equals the square of n."


@pytest.fixture
def run(tmp_path):
    other = "Determine all primes p for which p squared plus two is a prime as well, and prove that there are no more."
    problems = [Problem(source="S", native_id=str(n), text=text) for n, text in enumerate((TEXT, other))]
    write_part(tmp_path / "run" / "problems" / "0.parquet", Problem, problems)
    write_manifest(tmp_path / "run", "{}")
    rows = [{"problem": TEXT.replace("Let", "Suppose"), "proof": "By induction on the number n of summands."}]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_a_folder_that_is_no_run_is_not_called_clean(run):
    told = CliRunner().invoke(app, ["contamination", str(run / "rum"), "--against", f"table:{run}/set.jsonl"])
    assert told.exit_code == 2
    assert "rum is not a run folder" in " ".join(told.output.split())


def test_near_problems_are_counted_and_listed(run):
    told = CliRunner().invoke(
        app,
        [
            "contamination",
            str(run / "run"),
            "--against",
            f"table:{run}/set.jsonl",
            "--out",
            str(run / "out.md"),
        ],
    )
    assert told.exit_code == 0, told.output
    text = (run / "out.md").read_text()
    assert "| S | 2 | 1 |" in text
    assert "Suppose n be a positive integer" in text


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("set.jsonl", "give KIND:PATH"),
        ("tabel:set.jsonl", "Did you mean table"),
        ("table:none.jsonl", "none.jsonl"),
    ],
)
def test_a_set_that_is_not_there_is_said(run, against, says):
    told = CliRunner().invoke(app, ["contamination", str(run / "run"), "--against", against])
    assert told.exit_code == 2
    assert says in told.output
