"""Training data of a set: rows whose truth a reward reads, with the prompt of the verdict format."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from eval_cases import run, small_set

from pv_data.export.prompt import VerifierPrompt
from pv_data.splits import SplitRules
from pv_eval.sets.base import EvalSet
from pv_eval.train_data import write_train_data
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards import named
from pv_verdicts import build_format


def pair(number: int, **truth) -> Pair:
    text = {"question": f"Prove {number // 2}.", "proof": f"First {number}.\n\nThen QED."}
    given = {"label": None, "rubric": "1 point for the idea.", "reference": "By induction.", **text, **truth}
    return Pair(pair_id=f"p{number}", question_id=f"q{number // 2}", **given)


def write(folder: Path, *pairs: Pair, name: str = "grade", test: float = 0.0, **options):
    found = EvalSet(name="mine", pairs=pairs, rule_of={}, left_out={})
    form = build_format(name, options)
    counts = write_train_data(folder, found, form, VerifierPrompt.load(form.prompt), SplitRules(test=test))
    return dict(counts), {
        file.stem: pq.read_table(file).to_pylist() for file in sorted(folder.glob("*.parquet"))
    }


def reward(name: str, row: dict, response: str, **options) -> dict[str, float]:
    truth = row["reward_model"]["ground_truth"]
    return asyncio.run(named.scorer(name)(row["data_source"], response, truth, row["extra_info"], **options))


def test_a_graded_row_is_paid_by_the_grade_reward_with_no_option(tmp_path) -> None:
    counts, files = write(tmp_path / "data", pair(0, grade=5 / 7), pair(1, grade=1.0, label=True), pair(2))
    assert counts == {"train": 2, "no grade": 1}
    row, full = files["train"]
    assert (row["reward_model"]["ground_truth"], full["reward_model"]["ground_truth"]) == ("5", "7")
    assert row["extra_info"]["grade"] == 5.0
    assert (row["extra_info"]["label"], full["extra_info"]["label"]) == (None, True)
    paid = reward("grade", row, "A gap.\n### Grade: 5")
    assert (paid["score"], paid["acc"], paid["reward_valid"]) == (1.0, 1.0, 1.0)
    both = {"rewards": {"grade": 1.0}, "options": {"grade": {"truth_key": "grade"}}}
    assert reward("weighted", row, "A gap.\n### Grade: 7", **both)["score"] == pytest.approx(5 / 7)


def test_the_prompt_has_rubric_reference_and_grades(tmp_path) -> None:
    _, files = write(tmp_path / "data", pair(0, grade=0.5), grades=[0, 0.5, 1])
    (row,) = files["train"]
    (message,) = row["prompt"]
    for text in (
        "Prove 0.",
        "First 0.",
        "1 point for the idea.",
        "By induction.",
        "0, 0.5, 1",
        "### Grade: 1",
    ):
        assert text in message["content"]
    assert row["reward_model"]["ground_truth"] == "0.5"
    assert row["extra_info"]["problem"] == "Prove 0."


def test_a_step_is_counted_from_one_in_prompt_and_truth(tmp_path) -> None:
    steps = {"steps": ("First.", "Then QED.")}
    pairs = [
        pair(0, first_error=2, **steps),
        pair(1, first_error=0, **steps),
        pair(2, first_error=3, **steps),
    ]
    counts, files = write(tmp_path / "data", *pairs, pair(3, first_error=1), name="first_error")
    assert counts == {
        "train": 2,
        "a first wrong step behind the last one": 1,
        "a first wrong step of a proof that is not in steps": 1,
    }
    wrong, right = files["train"]
    assert "Step 2: Then QED." in wrong["prompt"][0]["content"]
    assert reward("first_error", wrong, "### First wrong step: 2")["score"] == 1.0
    assert reward("first_error", right, "### First wrong step: none")["score"] == 1.0
    with pytest.raises(ConfigError, match="counted from 1"):
        write(tmp_path / "other", pairs[0], name="first_error", first=0)


def test_the_split_is_by_question_and_test_rows_show_their_class(tmp_path) -> None:
    pairs = [pair(number, grade=float(number % 2)) for number in range(40)]
    counts, files = write(tmp_path / "data", *pairs, test=0.5)
    questions = {name: {row["extra_info"]["problem_id"] for row in rows} for name, rows in files.items()}
    assert counts["train"] + counts["test"] == 40
    assert questions["train"].isdisjoint(questions["test"])
    assert {row["data_source"] for row in files["test"]} == {"mine/right", "mine/wrong"}
    assert {row["data_source"] for row in files["train"]} == {"mine/train"}


def test_a_set_without_the_truth_writes_nothing(tmp_path) -> None:
    with pytest.raises(DataError, match="no grade: 1"):
        write(tmp_path / "data", pair(0, label=True))
    assert not (tmp_path / "data").exists()


def test_the_command_writes_a_plain_file(tmp_path) -> None:
    given = ("train-data", "--set", f"table:{small_set(tmp_path)}", "--out", tmp_path / "data")
    done = run(*given, "--format", "verdict")
    assert done.exit_code == 0, done.output
    assert "train.parquet: 8 rows" in done.output
    row = pq.read_table(tmp_path / "data/train.parquet").to_pylist()[0]
    assert reward("verdict", row, "Fine.\n### True")["score"] == 1.0
    refused = run(*given, "--format", "marks")
    assert (refused.exit_code, "Available: verdict, grade" in refused.output) == (1, True)
