"""`pv-rl weights`: rollouts from files, and what is said about files that are not what they should be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pv_rl.errors import DataError, SetupError
from pv_runs.weights import read_rollouts
from pv_runs.weights.reading import prompts_of_row_keys


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return path


def write_verl_dump(folder, step):
    """As verl 0.9.1's V1 trainer writes it: trainer_base.py `_log_rollout_data` and `_write_generations`."""
    folder.mkdir(exist_ok=True)
    traces = [
        "S2 is wrong ### False",
        "all of it follows, so I accept ### True",
        "it goes on and",
        "### True",
    ]
    rows = [
        {
            "input": f"Is proof {prompt} right?",
            "output": trace,
            "gts": "True",
            "score": float(trace.endswith("### True")),
            "step": step,
            "uid": f"{prompt}f3-9a_{session}_0",
        }
        for prompt in range(2)
        for session, trace in enumerate(traces[prompt * 2 :][:2] * 2)
    ]
    return write_jsonl(folder / f"{step}.jsonl", rows)


def test_a_dump_of_verl_is_read_by_prompt_with_verdicts_and_scores(tmp_path):
    write_verl_dump(tmp_path, 7)
    rollouts = read_rollouts(tmp_path)
    assert list(rollouts.groups) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert list(rollouts.lengths) == [5, 9, 5, 9, 4, 2, 4, 2]
    assert rollouts.unit == "words"
    assert rollouts.verdicts == [False, True, False, True, None, True, None, True]
    assert rollouts.scores == [0, 1, 0, 1, 0, 1, 0, 1]
    assert rollouts.source == f"{tmp_path / '7.jsonl'}, step 7 of step 7"
    assert any("keys of rows" in note for note in rollouts.notes)
    assert any("words of 'output', not tokens" in note for note in rollouts.notes)


def test_the_legacy_trainers_dump_has_no_uid_and_is_read_by_its_input(tmp_path):
    file = write_jsonl(tmp_path / "1.jsonl", [{"input": q, "output": "a b", "score": 0.0} for q in "xyx"])
    rollouts = read_rollouts(file)
    assert list(rollouts.groups) == [0, 1, 0]
    assert any("told apart by their text" in note for note in rollouts.notes)


def test_lengths_are_the_tokenizers_where_there_is_one(tmp_path):
    pytest.importorskip("transformers")
    from pv_lab import MODEL_DIR

    file = write_jsonl(
        tmp_path / "1.jsonl", [{"input": "q", "output": "S1 ok ### True"}, {"input": "q", "output": ""}]
    )
    rollouts = read_rollouts(file, tokenizer=str(MODEL_DIR))
    assert list(rollouts.lengths) == [4, 0]
    assert rollouts.unit == "tokens"
    assert any("end-of-text marks" in note for note in rollouts.notes)


def test_a_tokenizer_that_is_none_is_an_error(tmp_path):
    pytest.importorskip("transformers")
    file = write_jsonl(tmp_path / "1.jsonl", [{"input": "q", "output": "a"}])
    with pytest.raises(DataError, match="cannot be loaded by transformers as a tokenizer"):
        read_rollouts(file, tokenizer=str(tmp_path))


def test_a_tokenizer_needs_transformers_and_text(tmp_path, monkeypatch):
    file = write_jsonl(tmp_path / "1.jsonl", [{"input": "q", "output": "a", "length": 3}])
    with pytest.raises(DataError, match="--tokenizer is for text"):
        read_rollouts(file, tokenizer="any")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SetupError, match="pip install transformers"):
        read_rollouts(file, length_column="output", tokenizer="any")


COLUMNS = {
    "response_length": [3, 1, 2],
    "length": [3, 1, 2],
    "response_mask": [[1, 1, 0, 1], [0, 1], [1, 1]],
    "responses": [[11, 12, 13], [14], [15, 16]],
    "response_ids": [[11, 12, 13], [14], [15, 16]],
    "output": ["a b c", "a", "a  b"],
    "response": ["a b c", "a", "a\tb"],
}


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("column", COLUMNS)
def test_the_length_is_found_in_any_of_the_columns(column, ending, tmp_path):
    columns = {"uid": ["a", "b", "a"], column: COLUMNS[column]}
    rollouts = read_rollouts(write(tmp_path / f"1.{ending}", columns))
    assert list(rollouts.lengths) == [3, 1, 2]
    assert list(rollouts.groups) == [0, 1, 0]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_first_fitting_column_is_taken_unless_one_is_named(ending, tmp_path):
    columns = {"uid": ["a", "a"], "problem": ["p", "q"], "output": ["x", "x"], "length": [5, 6], "n": [7, 8]}
    file = write(tmp_path / f"1.{ending}", columns)
    assert list(read_rollouts(file).lengths) == [5, 6]
    assert list(read_rollouts(file, length_column="n").lengths) == [7, 8]
    assert list(read_rollouts(file, group_column="problem").groups) == [0, 1]
    assert list(read_rollouts(file, length_column="output").lengths) == [1, 1]


def write(path, columns):
    if path.suffix == ".parquet":
        return write_parquet(path, columns)
    return write_jsonl(
        path, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )


def test_a_prompt_may_be_a_chat(tmp_path):
    chats = [[{"role": "user", "content": text}] for text in "aba"]
    columns = {"prompt": chats, "length": [1, 2, 3]}
    for name in ("1.jsonl", "2.parquet"):
        assert list(read_rollouts(write(tmp_path / name, columns)).groups) == [0, 1, 0]


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "bool", "float"])
def test_every_kind_of_mask_in_parquet_is_summed(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    types = {
        "list": pa.list_(pa.int8()),
        "large_list": pa.large_list(pa.int64()),
        "fixed": pa.list_(pa.int64(), 3),
        "bool": pa.list_(pa.bool_()),
        "float": pa.list_(pa.float32()),
    }
    masks = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
    if kind == "bool":
        masks = [[bool(item) for item in mask] for mask in masks]
    file = write_parquet(
        tmp_path / "1.parquet", {"uid": list("aab"), "response_mask": pa.array(masks, types[kind])}
    )
    assert list(read_rollouts(file).lengths) == [2, 0, 3]


def test_batches_of_parquet_are_put_together(tmp_path):
    count = 5000
    columns = {
        "uid": [f"p{n // 8}" for n in range(count)],
        "response_mask": [[1] * (n % 7) + [0] for n in range(count)],
    }
    rollouts = read_rollouts(write_parquet(tmp_path / "1.parquet", columns))
    assert list(rollouts.lengths) == [n % 7 for n in range(count)]
    assert list(rollouts.groups) == [n // 8 for n in range(count)]


def test_only_the_columns_that_are_needed_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    file = write_parquet(tmp_path / "1.parquet", {"uid": ["a"], "length": [2], "notes": broken})
    assert read_rollouts(file).lengths == [2]
    with pytest.raises(DataError, match=r"row 1 of .*: not UTF-8 \(column notes\)"):
        read_rollouts(file, group_column="notes")


def test_verdicts_are_a_columns_or_else_the_texts(tmp_path):
    rows = {"uid": ["a"] * 3, "length": [1, 2, 3], "output": ["### True", "### False", "hm"]}
    assert read_rollouts(write(tmp_path / "1.jsonl", rows)).verdicts == [True, False, None]
    rows["verdict"] = [False, None, True]
    assert read_rollouts(write(tmp_path / "1.jsonl", rows)).verdicts == [False, None, True]
    rows["verdict"] = ["True", "False", "maybe"]
    assert read_rollouts(write(tmp_path / "1.jsonl", rows)).verdicts == [True, False, None]


def test_a_score_that_is_no_number_is_none(tmp_path):
    file = tmp_path / "1.jsonl"
    file.write_text('{"uid": 1, "length": 1, "score": 1}\n{"uid": 1, "length": 2, "score": NaN}\n')
    assert read_rollouts(file).scores == [1.0, None]
    write(file, {"uid": ["a"], "length": [1], "score": [None]})
    assert read_rollouts(file).scores is None


def test_keys_of_rows_are_told_from_ids_of_prompts():
    assert prompts_of_row_keys(["a_0_0", "a_1_0", "b_c_0_0"]) == ["a", "a", "b_c"]
    assert prompts_of_row_keys(["gsm_1_2", "gsm_1_2", "gsm_1_3"]) is None  # they repeat
    assert prompts_of_row_keys(["a_0_0", "b"]) is None
    assert prompts_of_row_keys([1, 2]) is None


def test_prompts_of_one_response_each_are_remarked_on(tmp_path):
    rollouts = read_rollouts(write_jsonl(tmp_path / "1.jsonl", [{"uid": n, "length": 1} for n in range(3)]))
    assert any("a prompt of its own in 'uid'" in note for note in rollouts.notes)


# Steps


def test_the_last_step_of_a_folder_is_taken_by_number_and_named(tmp_path):
    for step in (2, 9, 10):
        write_verl_dump(tmp_path, step)
    (tmp_path / "notes.txt").write_text("not a rollout")
    (tmp_path / ".11.jsonl").write_text("half written")
    assert read_rollouts(tmp_path).source == f"{tmp_path / '10.jsonl'}, step 10 of 3 steps from 2 to 10"
    assert read_rollouts(tmp_path, step=2).source == f"{tmp_path / '2.jsonl'}, step 2 of 3 steps from 2 to 10"


def test_a_file_of_several_steps_gives_one(tmp_path):
    rows = [{"uid": f"{s}{n}", "length": 10 * s + n, "step": s} for s in (1, 3, 2) for n in (0, 0, 1)]
    file = write_jsonl(tmp_path / "all.jsonl", rows)
    last = read_rollouts(file)
    assert list(last.lengths) == [30, 30, 31]
    assert last.source == f"{file}, step 3 of steps 1 to 3"
    assert list(read_rollouts(file, step=1).lengths) == [10, 10, 11]
    parquet = write_parquet(tmp_path / "all.parquet", {key: [row[key] for row in rows] for key in rows[0]})
    assert list(read_rollouts(parquet, step=2).lengths) == [20, 20, 21]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_the_last_step_is_found_in_any_order_of_a_long_file(order, tmp_path):
    rows = [{"uid": n // 4, "length": step, "step": step} for step in order for n in range(1500)]
    rollouts = read_rollouts(write_jsonl(tmp_path / "all.jsonl", rows))
    assert list(rollouts.lengths) == [3] * 1500


def test_a_step_that_is_not_there_is_an_error_that_says_which_are(tmp_path):
    file = write_verl_dump(tmp_path / "rollouts", 3)
    with pytest.raises(DataError, match="has no file of step 4; it has step 3"):
        read_rollouts(tmp_path / "rollouts", step=4)
    with pytest.raises(DataError, match="has no rows of step 4; it has step 3"):
        read_rollouts(file, step=4)
    write_jsonl(tmp_path / "x.jsonl", [{"uid": 1, "length": 1}])
    with pytest.raises(DataError, match="--step 4 is for a folder, or for a file with a column 'step'"):
        read_rollouts(tmp_path / "x.jsonl", step=4)


def test_a_folder_without_a_choice_is_an_error(tmp_path):
    with pytest.raises(DataError, match="folder without"):
        read_rollouts(tmp_path)
    row = [{"uid": 1, "length": 1}]
    write_jsonl(tmp_path / "one.jsonl", row)
    assert list(read_rollouts(tmp_path).lengths) == [1]
    write_jsonl(tmp_path / "train-00000-of-00002.jsonl", row)
    with pytest.raises(DataError, match="not named for steps"):
        read_rollouts(tmp_path)
    write_jsonl(tmp_path / "global_step_5.jsonl", row)
    assert "step 5" in read_rollouts(tmp_path).source
    write_jsonl(tmp_path / "5.jsonl", row)
    with pytest.raises(DataError, match=r"5\.jsonl and global_step_5\.jsonl for step 5"):
        read_rollouts(tmp_path)


# Bad files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; give a file with at least one row"),
        ("\n \n", "is empty"),
        ('{"uid": 1, "length": 2}\n{"uid": 1, "leng', "line 2 of .*: not JSON"),
        ('{"uid": 1, "length": 2}\n{"uid": 1}\n', "line 2 of .* has no 'length'"),
        ('{"uid": 1, "length": null}\n', "line 1 of .*: the length in 'length' is null"),
        (
            '{"uid": 1, "length": 2}\n{"uid": 1, "length": null}\n',
            "line 2 of .*: the length in 'length' is null",
        ),
        ('{"uid": 1, "length": -2}\n', "the length in 'length' is -2; it has to be a whole number from 0"),
        ('{"uid": 1, "length": 2.5}\n', "the length in 'length' is 2.5"),
        ('{"uid": 1, "length": NaN}\n', "the length in 'length' is nan"),
        ('{"uid": 1, "length": Infinity}\n', "the length in 'length' is inf"),
        ('{"uid": 1, "length": 2}\n{"uid": 1, "length": true}\n', "the length in 'length' is True"),
        ('{"uid": 1, "length": 2}\n{"uid": 1, "length": "2"}\n', "the length in 'length' is '2'"),
        ('{"uid": null, "length": 2}\n', "'uid' is null; it has to say which prompt"),
        ('{"length": 2}\n', "no column uid, prompt or input .* --group-column; it has: length"),
        ('{"uid": 1}\n', "no column response_length, .* --length-column; it has: uid"),
        ('{"uid": 1, "response_mask": [0, 2]}\n', "'response_mask' is not a list of 0 and 1"),
        ('{"uid": 1, "response_mask": null}\n', "the length in 'response_mask' is null"),
        (
            '{"uid": 1, "responses": ["a", "b"]}\n',
            "'responses' is not a list of token ids, one response a row",
        ),
        (
            '{"uid": 1, "responses": [1]}\n{"uid": 1, "responses": 4}\n',
            "line 2 of .*: 'responses' is not a list",
        ),
        (
            '{"uid": 1, "output": "a"}\n{"uid": 1, "output": 4}\n',
            "line 2 of .*: 'output' is 4; it has to be text",
        ),
        ('{"uid": 1, "output": "a"}\n{"uid": 1, "output": null}\n', "line 2 of .*: 'output' is null"),
        (
            '{"uid": 1, "length": 1, "step": 1}\n{"uid": 1, "length": 1, "step": 0.5}\n',
            "line 2 of .*: 'step' is 0.5",
        ),
        ("[" * 200_000, "line 1 of .*: not JSON"),
    ],
)
def test_a_bad_line_is_named(text, message, tmp_path):
    (tmp_path / "1.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        read_rollouts(tmp_path / "1.jsonl")


def test_a_bad_parquet_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    file = tmp_path / "1.parquet"
    for content in (b"", b"not parquet at all", b"PAR1" + b"\0" * 100 + b"PAR1"):
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"cannot be read as Parquet .* not have been written to its end"):
            read_rollouts(file)
    for columns, message in (
        ({"uid": pa.array([], pa.string()), "length": pa.array([], pa.int64())}, "is empty"),
        ({"uid": ["a", "a"], "length": [1, None]}, "row 2 of .*: the length in 'length' is null"),
        ({"uid": ["a", "a"], "length": [1.0, 2.5]}, "row 2 of .*: the length in 'length' is 2.5"),
        ({"uid": ["a", "a"], "length": [1, -4]}, "row 2 of .*: the length in 'length' is -4"),
        ({"uid": ["a", None], "length": [1, 4]}, "row 2 of .*: 'uid' is null"),
        (
            {"uid": ["a", "a"], "response_mask": [[1, 0], None]},
            "row 2 of .*: the length in 'response_mask' is null",
        ),
        ({"uid": ["a", "a"], "response_mask": [[1, 0], [3]]}, "rows 1 to 2 of .* is not a list of 0 and 1"),
        (
            {"uid": ["a", "a"], "response_mask": [[1, 0], [None]]},
            "rows 1 to 2 of .* is not a list of 0 and 1",
        ),
        ({"uid": ["a", "a"], "response_mask": [["a"], []]}, "lists of string, not of 0 and 1"),
        ({"uid": ["a", "a"], "responses": [["a", "b"], ["c"]]}, "lists of string, not of token ids"),
        ({"uid": ["a", "a"], "responses": [[1], None]}, "row 2 of .*: the length in 'responses' is null"),
        ({"uid": ["a"], "length": ["long"]}, "no column response_length"),
    ):
        with pytest.raises(DataError, match=message):
            read_rollouts(write_parquet(file, columns))


def test_a_damaged_page_of_parquet_is_an_error(tmp_path):
    file = write_parquet(
        tmp_path / "1.parquet", {"uid": [f"p{n}" for n in range(5000)], "length": list(range(5000))}
    )
    content = bytearray(file.read_bytes())
    content[200:4000] = b"\xaa" * 3800
    file.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_rollouts(file)


def test_a_null_mask_of_fixed_size_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    masks = pa.array([[1, 1], None, [1, 0]], pa.list_(pa.int64(), 2))
    with pytest.raises(DataError, match=r"row 2 of .*: the length in 'response_mask' is null"):
        read_rollouts(write_parquet(tmp_path / "1.parquet", {"uid": ["a"] * 3, "response_mask": masks}))


def test_paths_that_are_no_rollouts_are_named(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_rollouts(tmp_path / "1.jsonl")
    (tmp_path / "1.csv").write_text("uid,length")
    with pytest.raises(DataError, match=r"neither a \.parquet nor a \.jsonl file"):
        read_rollouts(tmp_path / "1.csv")


def test_columns_that_are_named_have_to_be_there(tmp_path):
    file = write_jsonl(tmp_path / "1.jsonl", [{"uid": "a", "length": 1, "flag": True}])
    with pytest.raises(
        DataError, match=r"--group-column 'problem' is not a column of .* It has: uid, length"
    ):
        read_rollouts(file, group_column="problem")
    with pytest.raises(DataError, match="--length-column 'size' is not a column of"):
        read_rollouts(file, length_column="size")
    with pytest.raises(DataError, match=r"column 'flag' of .* contains no lengths"):
        read_rollouts(file, length_column="flag")


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "1.parquet").write_bytes(b"")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SetupError, match="pip install pyarrow"):
        read_rollouts(tmp_path / "1.parquet")


ROW = st.tuples(st.text(max_size=5), st.integers(0, 50), st.sampled_from([None, 0.0, 1.0]))


@settings(deadline=None)  # the machine may be busy
@given(st.lists(ROW, min_size=1, max_size=30))
def test_any_rows_are_the_same_from_jsonl_and_parquet(tmp_path_factory, rows):
    pytest.importorskip("pyarrow")
    folder: Path = tmp_path_factory.mktemp("rows")
    ids, lengths, scores = map(list, zip(*rows, strict=True))
    columns = {"uid": ids, "response_mask": [[1] * n for n in lengths], "score": scores}
    one = read_rollouts(write(folder / "1.jsonl", columns))
    two = read_rollouts(write(folder / "2.parquet", columns))
    assert list(one.lengths) == list(two.lengths) == lengths
    assert list(one.groups) == list(two.groups)
    assert one.scores == two.scores
