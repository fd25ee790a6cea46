"""Examples of pv-data's README and pages give what they show."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml
from doc_examples import run_examples
from places import ROOT
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similarity
from pv_data.run.config import read_run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def indented(text: str, first: str) -> str:
    """The indented block of a page that begins with this line."""
    found = re.search(rf"^    {re.escape(first)}.*\n(?:    .*\n)*", text, flags=re.MULTILINE)
    assert found is not None, first
    return textwrap.dedent(found[0])


def test_the_smallest_run_prints_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("proofs.jsonl").write_text(indented(README, '{"problem"'))
    Path("mine.yaml").write_text(indented(README, "run_dir:"))
    command, *printed = indented(README, "$ pv-data run").splitlines()
    done = CliRunner().invoke(app, command.split()[2:])
    assert done.exit_code == 0, done.output
    assert all(line in done.output for line in printed)
    assert Path("runs/mine/export/verl/train.parquet").exists()


@pytest.mark.parametrize(
    ("page", "first"),
    [
        ("plugins/pv-data/README.md", "models:"),
        ("docs/guides/data_set.md", "models:"),
        ("docs/guides/methods.md", "generate:"),
    ],
)
def test_the_settings_of_a_page_are_accepted(page: str, first: str):
    shown = yaml.safe_load(indented((ROOT / page).read_text(encoding="utf-8"), first))
    models = {"writer": {"endpoints": [{"url": "http://127.0.0.1/v1", "model": "m"}]}}
    read_run({"run_dir": "r", "sources": [{"kind": "table", "path": "p"}], "models": models} | shown)


def test_the_examples_of_the_methods_page_give_what_it_shows():
    assert run_examples(ROOT / "docs/guides/methods.md") == 1


def test_the_similarities_of_the_duplicates_page_are_those_of_its_problems():
    page = " ".join((ROOT / "docs/concepts/duplicates.md").read_text(encoding="utf-8").split())
    one, other, third = re.findall(r'"((?:Prove|Show) that [^"]+)"', page)
    assert similarity(blind(one), blind(other), WEIGHTS) == pytest.approx(4 / 4.125)
    assert similarity(blind(one), blind(third), WEIGHTS) == pytest.approx(1 / 8.125)
