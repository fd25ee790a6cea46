"""The lab's data sets: splits, determinism, verl's schema, and errors that say what is allowed."""

import json
import os
import subprocess
import sys

import pytest
from typer import Typer
from typer.testing import CliRunner

from pv_judge.files import write_atomically
from pv_lab.dataset import main, make_rows, write_dataset
from pv_rl.errors import DataError

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install ./plugins/pv-cpu")

app = Typer()
app.command()(main)


def rows(**changes):
    return make_rows(**{"split": "train", "count": 50, "seed": 0, "difficulty": 2, "p_true": 0.6, **changes})


def questions(data):
    return {row["extra_info"]["question"] for row in data}


def test_no_question_is_in_both_splits_whatever_the_seed():
    # short questions with small numbers meet again across seeds most often
    train = questions(row for seed in range(3) for row in rows(count=1500, seed=seed, difficulty=1))
    test = questions(
        row for seed in range(3) for row in rows(count=1500, seed=seed, difficulty=1, split="test")
    )
    assert not train & test
    assert len(train | test) < 9000  # some did meet, so the disjointness is not luck alone


def test_proofs_of_one_question_share_its_id_and_differ():
    data = rows(count=8, proofs_per_question=4, p_true=0.0)
    ids = [row["extra_info"]["question_id"] for row in data]
    assert ids == [ids[0]] * 4 + [ids[4]] * 4
    assert ids[0] != ids[4]
    assert len({row["prompt"][0]["content"] for row in data}) > 4


@pytest.mark.parametrize(("p_true", "right"), [(0.0, 0), (0.6, 60), (0.55, 55), (1.0, 100)])
def test_share_of_right_proofs_is_exact(p_true, right):
    assert (
        sum(row["reward_model"]["ground_truth"] == "True" for row in rows(count=100, p_true=p_true)) == right
    )


def test_a_row_does_not_depend_on_how_many_are_made():
    assert rows(count=5) == rows(count=50)[:5]
    assert rows(seed=1) != rows(seed=0)


def test_rows_are_the_same_in_every_process():
    code = "import json; from pv_lab.dataset import make_rows; " + (
        "print(json.dumps(make_rows(split='train', count=20, seed=3, difficulty=3, p_true=0.5)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert json.loads(out) == rows(count=20, seed=3, difficulty=3, p_true=0.5)


def test_the_command_writes_what_verl_reads(tmp_path):
    arguments = ["--out", str(tmp_path), "--train", "20", "--test", "10", "--seed", "1", "--difficulty", "3"]
    result = CliRunner().invoke(app, [*arguments, "--p-true", "0.7"])
    assert result.exit_code == 0, result.output
    train = pq.read_table(tmp_path / "train.parquet").to_pylist()
    test = pq.read_table(tmp_path / "test.parquet").to_pylist()
    assert train == make_rows(split="train", count=20, seed=1, difficulty=3, p_true=0.7)
    assert len(test) == 10
    for row in train + test:
        assert list(row) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
        assert [message["role"] for message in row["prompt"]] == ["user"]
        assert row["reward_model"]["style"] == "rule"
        assert row["reward_model"]["ground_truth"] in ("True", "False")
    assert {row["data_source"] for row in train} == {"lab/train"}
    for row in test:
        right = row["reward_model"]["ground_truth"] == "True"
        assert row["data_source"] == ("lab/right" if right else "lab/wrong")
    assert sum(row["data_source"] == "lab/right" for row in test) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.parquet", "train.parquet"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"difficulty": 6}, r"difficulty 6 does not exist; use one of 1, 2, 3, 4, 5"),
        ({"p_true": 1.2}, r"p_true=1.2 is no share; give a number from 0 to 1"),
        ({"split": "dev"}, r"split 'dev' does not exist; use one of train, test"),
        ({"count": 0}, r"0 train rows were asked for; give 1 or more"),
        ({"proofs_per_question": 0}, r"proofs_per_question=0 is too small; give 1 or more"),
    ],
)
def test_bad_arguments_say_what_is_allowed(changes, message):
    with pytest.raises(DataError, match=message):
        rows(**changes)


def test_the_command_names_a_bad_argument(tmp_path):
    result = CliRunner().invoke(app, ["--out", str(tmp_path), "--difficulty", "9"])
    assert result.exit_code == 2
    assert "difficulty 9 does not exist" in " ".join(result.output.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "train.parquet"
    write_dataset(rows(count=2), path)
    before = path.read_bytes()

    def fail(temporary):
        temporary.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
