"""The dataset folder: the hub's library reads it, the card says what is in it, and it is there whole or not at all."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import replace
from functools import partial

import pyarrow.parquet as pq
import pytest
import yaml

from pv_data.audit import Mark, prove
from pv_data.export.card import CardFacts, write_card
from pv_data.export.dataset_folder import FEATURES, write_dataset
from pv_data.export.spending import Asked, spending
from pv_data.export.storage import whole_folder
from pv_data.records import Aside, Judgment, Origin, Problem, Proof, Qpc
from pv_data.splits import SplitRules, split_problems
from pv_data.table import write_part
from pv_rl.errors import ConfigError, DataError

ROW = Qpc(
    problem_id="q1",
    proof_id="p0",
    problem="Prove that $1 < 2$.",
    proof="Since $2 - 1 > 0$.",
    label=True,
    rule="panel: unanimous 3 of 3",
    slice="Putnam/rephrase/R1",
    split="train",
    votes=(True, True, True),
    licence="Apache-2.0",
)
ROWS = [
    *(replace(ROW, proof_id=f"p{number}", label=number != 4) for number in range(5)),
    replace(
        ROW,
        proof_id="t1",
        problem_id="q2",
        split="test",
        label=False,
        rule="audit: 2 of 2",
        consistent=False,
        votes=(True, False, True),
        slice="USAMO/ground_truth/-",
        licence="",
    ),
]
NOTHING = CardFacts()


def written(folder, facts=NOTHING, rows=ROWS, **options):
    return write_dataset(folder, rows, partial(write_card, facts), **options)


def card(folder) -> tuple[dict, str]:
    _, front, body = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), body


def test_the_files_are_named_as_the_hub_names_them_and_hold_the_rows(tmp_path):
    counts = written(tmp_path / "set", shard_rows=2)
    assert counts.rows == Counter(train=5, test=1)
    names = sorted(path.name for path in (tmp_path / "set" / "data").iterdir())
    assert names == [
        "test-00000-of-00001.parquet",
        *(f"train-{number:05d}-of-00003.parquet" for number in range(3)),
    ]
    rows = pq.read_table(tmp_path / "set" / "data" / "train-00002-of-00003.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["p4"]
    assert rows[0] == {
        "id": "p4",
        "problem_id": "q1",
        "problem": ROW.problem,
        "proof": ROW.proof,
        "label": False,
        "rule": ROW.rule,
        "slice": "Putnam/rephrase/R1",
        "source": "Putnam",
        "method": "rephrase",
        "model": "R1",
        "consistent": True,
        "votes": [True, True, True],
        "licence": "Apache-2.0",
    }
    assert list(rows[0]) == list(FEATURES)


def test_the_library_of_the_hub_reads_it_and_its_numbers_agree_with_the_card(tmp_path):
    datasets = pytest.importorskip("datasets")
    written(tmp_path / "set", shard_rows=2)
    found = datasets.load_dataset(
        str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"), verification_mode="all_checks"
    )
    assert {name: split.num_rows for name, split in found.items()} == {"train": 5, "test": 1}
    assert list(found["train"]["id"]) == ["p0", "p1", "p2", "p3", "p4"]
    assert found["test"][0]["votes"] == [True, False, True]
    told, _ = card(tmp_path / "set")
    assert found["train"].features == datasets.Features._from_yaml_list(told["dataset_info"]["features"])
    plain = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "set" / "data" / "train-*"),
        cache_dir=str(tmp_path / "cache2"),
    )
    assert plain["train"].num_rows == 5


def test_the_card_has_the_metadata_of_the_hub(tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    written(tmp_path / "set")
    metadata = hub.DatasetCard.load(tmp_path / "set" / "README.md").data.to_dict()
    assert metadata["license"] == ["apache-2.0", "unknown"]
    assert metadata["size_categories"] == ["n<1K"]
    told = {one["name"]: one["num_examples"] for one in metadata["dataset_info"]["splits"]}
    assert told == {"train": 5, "test": 1}
    files = (tmp_path / "set" / "data").iterdir()
    assert metadata["dataset_info"]["download_size"] == sum(path.stat().st_size for path in files)


def test_a_licence_that_the_hub_does_not_know_is_another(tmp_path):
    written(tmp_path / "set", rows=[replace(ROW, licence="CC BY 4.0"), replace(ROW, licence="ask the MAA")])
    metadata, body = card(tmp_path / "set")
    assert metadata["license"] == ["cc-by-4.0", "other"]
    assert "| Putnam | ask the MAA | 1 |" in body


def test_the_card_counts_what_there_is(tmp_path):
    splits = split_problems(
        [
            Problem(source="S", native_id="1", text="a"),
            Problem(source="S", native_id="2", text="b", split="test"),
        ],
        SplitRules(test=0),
    )
    asked = Asked(
        task="judge: r1",
        template="check@ab",
        model="R1",
        revision="0528",
        sampling='{"temperature": 0.6}',
        answers=1200,
        usd=1234.5,
        prompt_tokens=1_000_000,
        completion_tokens=2,
    )
    mark = Mark(slice="USAMO/ground_truth/-", question="q2", proof="t1", label=False, human=False)
    facts = CardFacts(
        title="Mine",
        splits=splits,
        asked=(asked, replace(asked, task="judge: mini", usd=0.0001)),
        aside=Counter({("filter", "geometry"): 7}),
        audit=prove([mark], {"USAMO/ground_truth/-": 1}),
    )
    written(tmp_path / "set", facts)
    _, body = card(tmp_path / "set")
    for line in (
        "# Mine",
        "| train | 1 | 5 | 4 | 1 | 0 |",
        "| test | 1 | 1 | 0 | 1 | 1 |",
        "1 went to test (asked for), 1 went to train (drawn).",
        "| panel: unanimous 3 of 3 | train | 5 |",
        "| audit: 2 of 2 | test | 1 |",
        '| judge: r1 | check@ab | R1 | 0528 | {"temperature": 0.6} | 1,200 | 1,000,000 | 2 | 1,234.50 |',
        "| **all** | | | | | 2,400 | 2,000,000 | 4 | 1,234.50 |",
        "| Putnam | Apache-2.0 | 5 |",
        "| USAMO | not known | 1 |",
        "- 5 of 6 labels are those of language models alone, which accept some wrong proofs and reject some right "
        "ones.",
        "- People checked labels of the panel in 1 of 2 slices.",
        "- test has proofs of one class only.",
        "- Of 1 triples the licence of the problem is not known.",
        "| filter | geometry | 7 |",
    ):
        assert line in body.splitlines(), line


def test_names_from_outside_cannot_break_the_card(tmp_path):
    hostile = "a|b\n---\nlicense: none\n# <script>alert(1)</script> [x](javascript:1)"
    facts = CardFacts(title=hostile, aside=Counter({("source", hostile): 1}))
    rows = [replace(ROW, slice=f"{hostile}/rephrase/{hostile}", rule=hostile, licence=hostile)]
    written(tmp_path / "set", facts, rows)
    metadata, body = card(tmp_path / "set")
    assert metadata["license"] == "other"
    assert "<script" not in body.replace("\\<", "")
    assert "\n---\n" not in body
    assert "[x](" not in body
    assert all(
        line.count("|") - line.count("\\|") == 4
        for line in body.splitlines()
        if "source" in line and "1 |" in line
    )


def test_costs_are_summed_by_who_was_asked_what(tmp_path):
    origin = Origin(
        template="t@1", model="m", sampling='{"seed": 1, "temperature": 1}', usd=0.5, prompt_tokens=10
    )
    proofs = [
        Proof(problem_id="q", source="S", method="proof", text="a", origin=origin),
        Proof(
            problem_id="q",
            source="S",
            method="proof",
            text="b",
            origin=replace(origin, sampling='{"seed": 2, "temperature": 1}', completion_tokens=7),
        ),
        Proof(problem_id="q", source="S", method="ground_truth", text="c"),
    ]
    judgment = Judgment(
        proof_id="p",
        judge="r1",
        conditions=(True,) * 4,
        stated=True,
        verdict=True,
        text="{}",
        origin=replace(origin, usd=0.25),
    )
    write_part(tmp_path / "proofs" / "a.parquet", Proof, proofs)
    write_part(tmp_path / "judgments" / "a.parquet", Judgment, [judgment])
    same = {"template": "t@1", "model": "m", "revision": ""}
    assert spending([tmp_path / "proofs"], [tmp_path / "judgments"]) == (
        Asked(
            task="generate: proof",
            **same,
            sampling='{"temperature": 1}',
            answers=2,
            usd=1.0,
            prompt_tokens=20,
            completion_tokens=7,
        ),
        Asked(
            task="judge: r1",
            **same,
            sampling='{"temperature": 1}',
            answers=1,
            usd=0.25,
            prompt_tokens=10,
            completion_tokens=0,
        ),
    )
    write_part(tmp_path / "aside" / "a.parquet", Aside, [])
    with pytest.raises(DataError, match="holds rows of kind 'aside', and 'proof' was expected"):
        spending([tmp_path / "aside"], [])


def test_a_set_that_breaks_off_leaves_what_was_there(tmp_path):
    written(tmp_path / "set")
    before = (tmp_path / "set" / "README.md").read_text()

    def rows():
        yield ROW
        raise RuntimeError("the disk went away")

    with pytest.raises(RuntimeError):
        written(tmp_path / "set", rows=rows())
    assert (tmp_path / "set" / "README.md").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_new_export_replaces_the_old_one_and_nothing_else(tmp_path):
    written(tmp_path / "set", shard_rows=1)
    written(tmp_path / "set", rows=ROWS[:1])
    assert [path.name for path in (tmp_path / "set" / "data").iterdir()] == ["train-00000-of-00001.parquet"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    for path in (tmp_path / "thesis", tmp_path / "thesis" / "chapter.tex"):
        with pytest.raises(ConfigError, match="exists and pv-data did not make it"):
            written(path)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_the_old_folder_comes_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    written(tmp_path / "set")
    rename = type(tmp_path).rename

    def failing(path, target):
        if path.name.endswith(".part"):
            raise OSError("no space left on device")
        return rename(path, target)

    monkeypatch.setattr(type(tmp_path), "rename", failing)
    with pytest.raises(OSError, match="no space left"), whole_folder(tmp_path / "set"):
        pass
    assert (tmp_path / "set" / "README.md").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_what_a_killed_export_left_is_cleared_away_and_what_a_running_one_makes_is_not(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    for pid in (gone.pid, os.getppid()):
        (tmp_path / f".set.{pid}.part").mkdir()
    (tmp_path / f".set.{gone.pid}.old").mkdir()
    (tmp_path / ".set.notes.part").mkdir()
    written(tmp_path / "set")
    assert {path.name for path in tmp_path.iterdir()} == {
        "set",
        f".set.{os.getppid()}.part",
        ".set.notes.part",
    }


def test_a_set_without_a_row_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no triple to export"):
        written(tmp_path / "set", rows=[])
    with pytest.raises(ConfigError, match="a file holds 1 row or more"):
        written(tmp_path / "set", shard_rows=0)
