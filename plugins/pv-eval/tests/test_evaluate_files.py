"""A run on disk: it comes back as it was, and what is damaged is refused in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluate_cases import made, pair, votes

from pv_eval import RunInfo, Vote, read_run, write_run
from pv_rl.errors import DataError

INFO = RunInfo(verifier="v", set_name="opc", temperature=0.6, seed=1, notes=("cut",), settings={"top_p": 0.9})


def write(folder: Path) -> Path:
    write_run(folder, *made(("a", True, "q", "TF"), ("b", False, "r", "FN")), INFO)
    return folder


def change(path: Path, **columns) -> None:
    """Replace columns, or leave them out where None is given."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.remove_column(place) if values is None else table.set_column(place, name, values)
    pq.write_table(table, path)


def test_a_run_comes_back_as_it_was(tmp_path):
    pairs = [pair("a", True, slice="s", question="Q", proof="P", weight=0.5), pair("b", None, "é")]
    given = [*votes("a", "TFN", length=3.0, trace="x\ny", logit=-1.5), *votes("b", "T", "é")]
    write_run(tmp_path / "new", pairs, given, INFO)
    assert read_run(tmp_path / "new") == (pairs, given, INFO)
    bare = [replace(vote, trace=None) for vote in given]
    assert read_run(tmp_path / "new", traces=False) == (pairs, bare, INFO)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "pairs.parquet",
        "run.json",
        "votes.parquet",
    ]


def test_halves_of_surrogate_pairs_do_not_stop_a_run(tmp_path):
    write_run(
        tmp_path,
        [pair("a", True, proof="\ud800")],
        votes("a", "T", trace="\udfff"),
        RunInfo(verifier="\ud800"),
    )
    pairs, given, info = read_run(tmp_path)
    assert (pairs[0].proof, given[0].trace, info.verifier) == ("?", "?", "?")


def test_columns_with_a_default_may_lack_and_others_are_ignored(tmp_path):
    write(tmp_path)
    change(tmp_path / "votes.parquet", trace=None, logit=None, length=None)
    table = pq.read_table(tmp_path / "pairs.parquet")
    pq.write_table(table.append_column("year", pa.array([1, 2])), tmp_path / "pairs.parquet")
    pairs, given, _ = read_run(tmp_path)
    assert len(pairs) == 2
    assert given[0].trace is None


def test_a_missing_file_is_named(tmp_path):
    (write(tmp_path) / "votes.parquet").unlink()
    with pytest.raises(DataError, match=r"has no votes\.parquet"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "columns", "text"),
    [
        ("votes.parquet", {"verdict": None}, "lacks the columns verdict"),
        ("pairs.parquet", {"label": pa.array([1, 0])}, "label is int64, expected bool"),
        ("pairs.parquet", {"pair_id": pa.array([1, 2])}, "pair_id is int64, expected string"),
        ("pairs.parquet", {"pair_id": pa.array(["a", None])}, "row 1: the pair of 'None' has pair_id=None"),
        ("votes.parquet", {"sample": pa.array([0, 1, 0.5, 2])}, "sample is double"),
        ("votes.parquet", {"sample": pa.array([0, 1, -1, 2])}, "row 2: the vote of 'b' has sample=-1"),
        (
            "pairs.parquet",
            {"weight": pa.array([1.0, 1e300])},
            "weight=1e\\+300; expected a number from 0 to 1e50",
        ),
    ],
)
def test_a_table_of_wrong_values_is_refused(tmp_path, file, columns, text):
    write(tmp_path)
    path = tmp_path / file
    change(path, **columns)
    with pytest.raises(DataError, match=text):
        read_run(tmp_path)


def test_other_tables_and_later_versions_are_refused(tmp_path):
    write(tmp_path)
    good = pq.read_table(tmp_path / "pairs.parquet")
    for said in (
        None,
        {"pv_data.evaluate": "pair 99"},
        {"pv_data.evaluate": "vote 1"},
        {"pv_data.evaluate": "pair"},
    ):
        pq.write_table(good.replace_schema_metadata(said), tmp_path / "pairs.parquet")
        with pytest.raises(DataError, match=r"pairs\.parquet has the metadata"):
            read_run(tmp_path)
    (tmp_path / "pairs.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[1]", "not a JSON object"),
        ('{"verifier": "v"}', "format=None"),
        ('{"format": 3, "verifier": "v"}', "format=3"),
        ('{"format": 1}', "expected verifier"),
        ('{"format": 1, "verifier": "v", "colour": "red"}', "into settings"),
        ('{"format": 1, "verifier": ""}', "verifier=''"),
        ('{"format": 1, "verifier": "v", "seed": "one"}', "seed='one'"),
        ('{"format": 1, "verifier": "v", "length_unit": "miles"}', "expected tokens or characters"),
        ('{"format": 2, "verifier": "v", "grades": [1]}', r"run\.json: a run has grades=.* two or more"),
        ('{"format": 2, "verifier": "v", "grades": [0, %s]}' % ("9" * 400), r"run\.json: a run has grades="),
        ('{"format": 2, "verifier": "v", "seed": %s}' % ("9" * 400), r"run\.json: a run has seed="),
        (" " * 1_000_001, "more than 1000000 bytes"),
    ],
)
def test_a_run_json_that_is_none_is_refused(tmp_path, text, said):
    (write(tmp_path) / "run.json").write_text(text)
    with pytest.raises(DataError, match=said):
        read_run(tmp_path)


def test_a_byte_order_mark_and_whole_numbers_beyond_int64_are_read_and_written(tmp_path):
    vote = Vote(pair_id="p", question_id="q", sample=0, verdict=True, length=10**30)
    write_run(tmp_path, [], [vote], RunInfo(verifier="v"))
    path = tmp_path / "run.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    _, (found,), info = read_run(tmp_path)
    assert (found.length, info.verifier) == (1e30, "v")


def test_settings_that_json_does_not_have_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(DataError, match="JSON does not have"):
        write_run(tmp_path, [], [], RunInfo(verifier="v", settings={"x": {1, 2}}))
    assert list(tmp_path.iterdir()) == []
