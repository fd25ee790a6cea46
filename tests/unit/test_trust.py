"""The threat model names tests that exist, and what no other test holds: pickles, YAML tags, packed bombs."""

from __future__ import annotations

import gzip
import os
import re

import pytest
import yaml
from omegaconf import OmegaConf
from places import ROOT

from pv_data.records import Problem
from pv_data.run.config import compose
from pv_data.shell import load_yaml
from pv_data.table import read_rows
from pv_eval.run_files import RunInfo, read_info, read_run, write_run
from pv_eval.votes import Pair
from pv_judge.ledger import read_ledger
from pv_judge.rejudge.command import read_judge
from pv_judge.rowfiles import BadRow, open_rows, text
from pv_judge.scoring.command import read_options
from pv_rl.errors import ConfigError, DataError
from pv_runs.hydra_record import read_config, saved_config
from pv_runs.watch.places import Places
from pv_runs.watch.traces import Traces


def test_every_test_that_the_threat_model_names_exists():
    page = (ROOT / "docs" / "internals" / "trust.md").read_text(encoding="utf-8")
    named = {one for one in page.split("`") if one.startswith("test_")}
    files = [
        file for folder in ("tests", "plugins", "examples") for file in (ROOT / folder).rglob("test_*.py")
    ]
    there = {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    assert len(named) > 40
    assert named - there == set()


@pytest.mark.parametrize(
    "suffix", [".pkl", ".pickle", ".pt", ".npz", ".npy", ".bin", ".jsonl.zip", ".tar.gz"]
)
def test_no_reader_takes_a_file_that_can_hold_a_pickle(tmp_path, suffix):
    (tmp_path / f"rows{suffix}").write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match="another kind of file"):
        open_rows(tmp_path / f"rows{suffix}")


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.mkdir [made]",
        "!!python/name:os.system ''",
        "!!python/object/new:os.mkdir [made]",
    ],
)
def test_a_yaml_tag_makes_no_object(tmp_path, monkeypatch, tag):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "run" / ".hydra" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"a: {tag}")
    with pytest.raises(DataError, match="could not determine a constructor"):
        read_config(tmp_path / "run")
    for load in (load_yaml, OmegaConf.create, lambda given: OmegaConf.load(file)):
        with pytest.raises((yaml.YAMLError, ValueError), match="could not determine a constructor"):
            load(file.read_text())
    assert os.listdir(tmp_path) == ["run"]


DOUBLES = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))])
MERGES = "\n".join(["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60))])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (DOUBLES, "stand for more than 100,000"),
        (MERGES, "stand for more than 100,000"),
        ("a: &a [*a]", "itself"),
    ],
    ids=["doubles", "merges", "circle"],
)
@pytest.mark.parametrize(
    "load",
    [
        lambda file: load_yaml(file.read_text()),
        lambda file: read_options(file, []),
        read_judge,
        lambda file: compose(str(file)),
        lambda file: saved_config(file.parent.parent, []),
    ],
    ids=["load_yaml", "score", "rejudge", "pv-data run", "a run that is resumed"],
)
def test_aliases_that_stand_for_very_much_are_refused_in_every_config(tmp_path, load, given, said):
    file = tmp_path / ".hydra" / "config.yaml"
    file.parent.mkdir()
    file.write_text(given)
    with pytest.raises((ConfigError, DataError, ValueError), match=said):
        load(file)


def test_a_few_aliases_are_fine(tmp_path):
    (tmp_path / "options.yaml").write_text("veto: &v abstain\nmore: {veto: *v, <<: {a: 1}}\n")
    assert read_options(tmp_path / "options.yaml", []) == {
        "veto": "abstain",
        "more": {"veto": "abstain", "a": 1},
    }


def test_a_packed_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST_JSON", 10_000)
    for name in ("rows.jsonl.gz", "rows.json.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b'{"a": "' + b"x" * 5_000_000 + b'"}', 1))
    (row,) = open_rows(tmp_path / "rows.jsonl.gz", longest=1000).scan()
    assert isinstance(row, BadRow)
    assert len(row.content) <= text.SHOWN
    with pytest.raises(DataError, match="more than 10000 bytes"):
        list(open_rows(tmp_path / "rows.json.gz").scan())


def of_watch(folder):
    places = Places(folder=folder, metrics=(), rollouts=folder, ledger=folder, sentinel=folder)
    if Traces().look(places)[0] == []:
        raise DataError("not a regular file was read as nothing")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("part-a.parquet", read_ledger),
        ("part-a.parquet", lambda folder: read_ledger(folder / "part-a.parquet")),
        ("journal-a.jsonl", read_ledger),
        ("part-a.parquet", of_watch),
        ("journal-a.jsonl", of_watch),
        ("run.json", read_info),
        ("pairs.parquet", read_run),
        ("00000.parquet", lambda folder: list(read_rows(folder, Problem))),
        ("votes.csv", lambda folder: list(open_rows(folder / "votes.csv").scan())),
    ],
)
def test_no_reader_waits_for_a_pipe_in_the_place_of_a_file(tmp_path, name, read):
    if read is read_run:
        write_run(tmp_path, [Pair(pair_id="p", question_id="q", label=True)], [], RunInfo(verifier="v"))
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"regular file|another kind|has no pairs|no ledger"):
        read(tmp_path)
