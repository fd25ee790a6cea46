"""The table of how a set is made up, held to the paper's own."""

from __future__ import annotations

import csv
from collections import Counter

import places
import pytest

from pv_data.export.distribution import distribution, of_counts
from pv_data.records import Qpc, Slice

PAPER = places.SHARED / "paper" / "data_distribution.csv"
METHODS = {"ground truth": "ground_truth", "naive negative": "naive_negative"}


def paper() -> list[dict[str, str]]:
    if not PAPER.exists():
        pytest.skip(f"the paper's table is not there: {PAPER}")
    with PAPER.open(newline="") as file:
        return list(csv.DictReader(file))


def counts_of(lines) -> Counter[tuple[str, bool]]:
    counts: Counter[tuple[str, bool]] = Counter()
    for line in lines:
        name = f"{line['source']}/{METHODS.get(line['method'], line['method'])}/{line['model']}"
        counts[name, True] += int(line["positive"])
        counts[name, False] += int(line["negative"])
    return counts


def test_the_papers_table_comes_out_with_its_groups_and_totals():
    lines = paper()
    table = of_counts(counts_of(lines), human_sources={"Student"})
    totals = {group: table.sum(group).total for group in ("llm_aided", "human", "auxiliary")}
    assert totals == {"llm_aided": 15_076, "human": 4_339, "auxiliary": 1_489}
    assert table.sum().total == 20_904
    assert len(table.lines) == 28  # the text says 27
    expected = {
        (
            *(line["group"], line["source"], line["model"], METHODS.get(line["method"], line["method"])),
            *(int(line["positive"]), int(line["negative"])),
        )
        for line in lines
    }
    made = {(one.group, one.source, one.model, one.method, one.positive, one.negative) for one in table.lines}
    assert made == expected


def test_without_naming_student_work_its_rewritings_are_llm_aided():
    table = of_counts(counts_of(paper()))
    assert table.sum("llm_aided").total == 15_076 + 2 * (165 + 122)


def row(slice_: str, label: bool) -> Qpc:
    return Qpc(
        problem_id="q",
        proof_id="p",
        problem="",
        proof="",
        label=label,
        rule="",
        slice=slice_,
        split="train",
    )


def test_triples_are_counted_and_the_table_reads_well():
    rows = [row("B/proof/z", True)] * 1200 + [row("a/proof/y", False), row("a/ground_truth/-", True)]
    table = distribution(rows)
    assert table.to_markdown() == (
        "| source | model | method | positive | negative | total |\n"
        "| --- | --- | --- | ---: | ---: | ---: |\n"
        "| a | y | proof | 0 | 1 | 1 |\n"
        "| B | z | proof | 1,200 | 0 | 1,200 |\n"
        "| **LLM-aided, 2 combinations** |  |  | **1,200** | **1** | **1,201** |\n"
        "| a | - | ground\\_truth | 1 | 0 | 1 |\n"
        "| **Human source, 1 combination** |  |  | **1** | **0** | **1** |\n"
        "| **All, 3 combinations** |  |  | **1,201** | **1** | **1,202** |\n"
    )
    assert table.to_csv() == (
        "group,source,model,method,positive,negative\n"
        "llm_aided,a,y,proof,0,1\n"
        "llm_aided,B,z,proof,1200,0\n"
        "human,a,-,ground_truth,1,0\n"
    )


def test_a_cell_that_a_spreadsheet_would_run_is_made_text():
    text = distribution([row("=cmd()/proof/-x", True)]).to_csv()
    assert "llm_aided,'=cmd(),'-x,proof,1,0" in text


def test_a_model_may_have_a_slash_in_its_name():
    assert Slice.read("S/proof/deepseek-ai/R1") == Slice(source="S", method="proof", model="deepseek-ai/R1")
    assert Slice.read("S") == Slice(source="S", method="-", model="-")
