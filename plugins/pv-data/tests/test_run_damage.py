"""A byte that is flipped in a run's folder is noticed, or no row changes."""

from __future__ import annotations

import csv
import json
import logging
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panel import JudgeServer, Script
from small_run import Run, by_text

from pv_data.checksums import MARK, add_checksum, checksum_of, verify
from pv_data.records import Label
from pv_data.run.audit import draw_sheet, record_sheet
from pv_data.run.manifest import FILE
from pv_data.table import read_rows
from pv_rl.errors import DataError

GENERATE = "generate: [{method: proof, model: judge}]\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Iterator[Run]:
    """A run that is done, and audited in part."""
    folder = tmp_path_factory.mktemp("whole")
    with JudgeServer(Script(reply=by_text)) as server:
        made = Run(folder, server, more=GENERATE)
        assert made.command()[0] == 0
        sheet = folder / "sheet.csv"
        draw_sheet(made.folder, sheet, pilot=0.4)
        with sheet.open(newline="") as file:
            rows = list(csv.DictReader(file))
        with sheet.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(row | {"right": "yes"} for row in rows)
        assert record_sheet(made.folder, sheet, "A").marks > 0
        assert made.command("--redo", "generate")[0] == 0
        yield made


@pytest.fixture
def run(whole, tmp_path) -> Run:
    return whole.copy(tmp_path / "run")


def flip(path: Path, at: int, bits: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= bits
    path.write_bytes(raw)


@pytest.mark.parametrize("flips", [10, pytest.param(200, marks=pytest.mark.paths)])
def test_a_flipped_byte_is_noticed_or_harmless(flips, whole, tmp_path, caplog):
    """Half of the runs are done again, which reads the answers too."""
    rng, before, noticed = random.Random(0), whole.tables(), 0
    files = sorted(
        path
        for path in whole.folder.rglob("*")
        if path.is_file() and path.stat().st_size and "export" not in path.relative_to(whole.folder).parts
    )
    for number in range(flips):
        run, file = whole.copy(tmp_path / str(number)), rng.choice(files)
        at, bits = rng.randrange(file.stat().st_size), rng.randrange(1, 256)
        flip(run.folder / file.relative_to(whole.folder), at, bits)
        caplog.clear()
        code, said = run.command(*(("--redo", "generate") if number % 2 else ()))
        warned = [one for one in caplog.records if one.levelno >= logging.WARNING]
        if code:
            assert (code, file.name in said.replace(" ", "")) == (1, True), said
        elif not warned:
            assert run.tables() == before, (file, at, bits)
        noticed += bool(code or warned)
        shutil.rmtree(run.folder)
    assert noticed >= flips / 4


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("proofs/00-*", "--redo collect"),
        ("collected/00*", "--redo collect"),
        ("generated/00-*", "--redo generate"),
        ("labels/01-*", "--redo judge"),
        ("marks/*", "record its sheet again (pv-data audit record)"),
    ],
)
def test_the_error_names_the_file_and_the_remedy_works(table, says, run):
    before = run.tables()
    (path, *_) = run.folder.glob(table)
    flip(path, path.stat().st_size - 30, 1)
    code, said = run.command()
    assert (code, path.name in said.replace(" ", ""), says in said) == (1, True, True), said
    if "--redo" in says:
        code, said = run.command(*says.split())
        assert code == 0, said
        assert run.tables() == before
    else:
        path.unlink()
        assert run.command()[0] == 0


def test_a_part_that_is_missing_or_of_another_run_is_noticed(run, tmp_path):
    part = run.folder / "proofs" / "00-00000.parquet"
    whole = part.read_bytes()
    part.unlink()
    assert "parquet is missing. Restore it, or do its stage again with --redo collect" in run.command()[1]
    pq.write_table(pq.read_table(pa.BufferReader(whole)).slice(1), part)
    assert "is not the file that was written there" in run.command()[1]
    part.write_bytes(whole)
    assert run.command()[0] == 0


def test_a_manifest_and_a_spend_file_that_were_changed_are_refused_and_those_of_earlier_versions_are_read(
    run,
):
    for name, key in ((FILE, "settings"), ("spent.json", "in_run")):
        path = run.folder / name
        document = json.loads(path.read_text())
        document[key] |= {"seed": 1, "usd": 9.0}
        path.write_text(json.dumps(document))
        code, said = run.command()
        assert (code, name in "".join(said.split()), "taking out its checksum, crc32" in said) == (
            1,
            True,
            True,
        ), said
        document[key] |= {"seed": 0, "usd": 0.0}
        path.write_text(json.dumps({key: value for key, value in document.items() if key != "crc32"}))
        assert run.command()[0] == 0
        assert "crc32" in json.loads(path.read_text())


def test_the_export_can_be_checked_with_sha256sum(run):
    export = run.folder / "export"
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=export, capture_output=True).returncode == 0
    listed = {line.split("  ", 1)[1] for line in (export / "SHA256SUMS").read_text().splitlines()}
    there = {str(path.relative_to(export)) for path in export.rglob("*") if path.is_file()}
    assert {one for one in there if "/." not in f"/{one}"} - {"SHA256SUMS"} == listed


@pytest.mark.parametrize("text", ["pv_data.crc32=", f"{MARK.decode()}00000000\n"])
def test_a_checksum_is_found_where_it_is_and_not_where_a_row_says_so(text, tmp_path):
    path = tmp_path / "part.parquet"
    table = pa.table({"text": [text]})
    pq.write_table(table, path, compression="none")
    plain = path.read_bytes()
    add_checksum(path)
    verify(path)
    assert len(checksum_of(path)) == 8
    assert path.stat().st_size == len(plain) + len(MARK) + 9
    assert pq.read_table(path).equals(table)
    for at in range(0, len(plain), 3):
        path.write_bytes(plain)
        add_checksum(path)
        raw = path.read_bytes()
        flip(path, at, 4)
        try:
            verify(path)
        except DataError:
            continue
        assert path.read_bytes().count(MARK) < raw.count(MARK)  # the mark itself was hit


def test_a_table_of_an_earlier_version_is_read(run):
    before = list(read_rows(run.folder / "labels", Label))
    for path in (run.folder / "labels").iterdir():
        raw = path.read_bytes()
        at = raw.rfind(MARK)
        path.write_bytes(raw[:at] + raw[at + len(MARK) + 9 :])
    assert list(read_rows(run.folder / "labels", Label)) == before
