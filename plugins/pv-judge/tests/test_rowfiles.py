"""Row files: the same rows from every format, places in errors, and bounds on what is read."""

from __future__ import annotations

import gzip
import json

import pytest

from pv_judge.rowfiles import BadRow, open_rows
from pv_rl.errors import DataError

ROWS = [{"uid": "a", "ids": [1, 2], "meta": {"k": 1}}, {"uid": "b", "ids": [], "meta": {"k": 2}}]


def written(folder, suffix):
    file = folder / f"rows{suffix}"
    if suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(ROWS), file)
        return file
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    text = json.dumps(ROWS) if ".json" in suffix and ".jsonl" not in suffix else lines
    file.write_bytes(gzip.compress(text.encode(), mtime=0) if suffix.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet"])
def test_every_format_gives_the_same_rows_with_nested_and_list_columns(suffix, tmp_path):
    table = open_rows(written(tmp_path, suffix))
    assert [row.values for row in table.rows()] == ROWS
    assert [row.values for row in table.rows(["uid", "ids"], {"ids": "count"})] == [
        {"uid": "a", "ids": 2},
        {"uid": "b", "ids": 0},
    ]
    assert table.kinds == {"uid": "text", "ids": "list", "meta": "other"}


@pytest.mark.parametrize(
    ("value", "within", "rows"),
    [
        ({"x": {"a": 1}, "y": {"a": 2, "id": 7}}, "", [{"a": 1, "id": "x"}, {"a": 2, "id": 7}]),
        ({"version": 1, "data": [{"a": 1}, {"a": 2}]}, "", [{"a": 1}, {"a": 2}]),
        ({"data": {"test": [{"a": 1}], "train": []}}, "data.test", [{"a": 1}]),
        ({"data": {"x": {"a": 1}}}, "data", [{"a": 1, "id": "x"}]),
        ({"a": [{"b": 1}]}, ".", [{"a": [{"b": 1}]}]),
        ({"a": 1, "b": [2]}, "", [{"a": 1, "b": [2]}]),
    ],
)
def test_json_gives_the_rows_of_an_object(value, within, rows, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(value))
    assert [row.values for row in open_rows(tmp_path / "x.json", within=within).rows()] == rows


def test_a_bad_row_of_json_does_not_cost_the_others(tmp_path):
    (tmp_path / "x.json").write_text('[{"a": [NaN]}, {"a": {"b": 1, "b": 2}}, [], {"a": 3}]')
    found = list(open_rows(tmp_path / "x.json").scan())
    assert [row.reason for row in found if isinstance(row, BadRow)] == [
        "not JSON",
        "key twice",
        "not an object",
    ]
    assert [(row.number, row.values["a"]) for row in found if not isinstance(row, BadRow)] == [(4, 3)]


@pytest.mark.parametrize(
    ("columns", "lists", "said"),
    [
        (["uid", "text"], {}, "has no column 'text'; it has uid, ids, meta"),
        (["uid"], {"uid": "sum"}, "'uid' holds string, not lists of 0 and 1"),
        (["meta"], {"meta": "count"}, "'meta' holds struct<k: int64>, not lists of token ids"),
    ],
)
def test_columns_that_parquet_does_not_have_are_named(columns, lists, said, tmp_path):
    with pytest.raises(DataError, match=said):
        list(open_rows(written(tmp_path, ".parquet")).rows(columns, lists))


def test_a_column_name_of_parquet_that_is_not_utf8_is_refused(tmp_path):
    file = written(tmp_path, ".parquet")
    file.write_bytes(file.read_bytes().replace(b"meta", b"m\xffta"))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(open_rows(file).rows())


def test_a_changed_bit_in_the_footer_of_parquet_loses_no_row(tmp_path):
    pa, file = pytest.importorskip("pyarrow"), tmp_path / "rows.parquet"
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([{"uid": "a", "n": 1}] * 3)
    pq.write_table(table, file, compression="none", use_dictionary=False, store_schema=False)
    whole, counts = file.read_bytes(), set[object]()
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(begin, len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        try:
            counts.add(len(list(open_rows(file).rows())))
        except DataError as error:
            counts.add("its footer counts 3 rows, and it holds 0" in str(error))
    assert counts == {3, True, False}


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_of_a_spreadsheet_in_another_language_has_other_separators(separator, tmp_path):
    text = f'\ufeffuid{separator}note\r\na{separator}"0,5{separator} one"\r\n'
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8", newline="")
    (row,) = open_rows(tmp_path / "rows.csv").rows()
    assert row.values == {"uid": "a", "note": f"0,5{separator} one"}


def test_a_csv_gives_text_and_the_line_of_each_row(tmp_path):
    (tmp_path / "rows.csv").write_text('uid,note\na,"two\nlines"\nb,\n')
    rows = list(open_rows(tmp_path / "rows.csv").rows())
    assert [(row.number, row.values) for row in rows] == [
        (3, {"uid": "a", "note": "two\nlines"}),
        (4, {"uid": "b", "note": ""}),
    ]
    assert rows[0].where == f"line 3 of {tmp_path / 'rows.csv'}"


def test_a_bad_row_stops_a_strict_reader_and_not_a_scan(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": 1, "a": 2}\n\n{"a": NaN}\n[1]\n\xff\n{"a": 3}')
    with pytest.raises(
        DataError, match=r"line 5 of .*rows\.jsonl: not an object \(the line is a JSON list\)"
    ):
        list(open_rows(file).rows())
    found = list(open_rows(file).scan())
    assert [row.reason for row in found if isinstance(row, BadRow)] == [
        "key twice",
        "not JSON",
        "not an object",
        "not UTF-8",
    ]
    assert [row.values["a"] for row in found if not isinstance(row, BadRow)] == [1, 3]


def test_a_row_that_is_too_long_is_never_in_memory_and_the_next_is_read(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"a": "x" * 100}) + '\n{"a": "y"}\n')
    giant, good = open_rows(file, longest=50).scan()
    assert isinstance(giant, BadRow)
    assert giant.detail == "110 bytes; at most 50 are taken"
    assert len(giant.content) == 51
    assert not isinstance(good, BadRow)
    assert good.number == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"", r"another kind of file; give a file that ends in \.jsonl, \.json, \.csv, \.parquet"),
        ("x.csv", b"a,a\n1,2\n", "no first line of column names, each once"),
        (
            "x.csv",
            b"a\n1\nf\xfcr\n",
            r"x.csv is not UTF-8 \(line 3\); write it again .* iconv -f latin1 -t utf8",
        ),
        ("x.json", b"7", "is a JSON int; it has to hold objects"),
        ("x.json", b'{"a": ' + b"[" * 201 + b"]" * 201 + b"}", "it has more than 200 levels"),
        ("x.jsonl", b"\xff\xfe{\x00", "is UTF-16"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9], "cannot be read to its end"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        list(open_rows(tmp_path / name).rows())
