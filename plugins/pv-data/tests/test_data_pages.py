"""Examples of pv-data's README and pages give what they show."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from threading import Thread

import pytest
import yaml
from places import ROOT
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similarity
from pv_data.records import Label, Proof
from pv_data.run.config import read_run
from pv_data.simulated_judges import Judges, labels_of
from pv_data.table import read_rows

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

    judges = Judges(labels_of("table", Path("proofs.jsonl")), blind=0, slips=0, port=0)
    url = f"127.0.0.1:{judges.server_port}"
    Thread(target=judges.serve_forever, daemon=True).start()
    with judges, Path("mine.yaml").open("a") as file:
        file.write(indented(README, "models:").replace("127.0.0.1:8001", url))
        file.flush()
        done = CliRunner().invoke(app, command.split()[2:])
        judges.shutdown()
    assert done.exit_code == 0, done.output
    assert "judge: 9 of 9 questions, 9 calls" in done.output
    judged = {proof.id: proof.known for proof in read_rows("runs/mine/proofs", Proof)}
    assert {label.proof_id: label.value for label in read_rows("runs/mine/labels", Label)} == judged


def test_simulated_judges_err_at_the_rates_that_are_set():
    labels = {f"proof {number}": number % 2 == 0 for number in range(1000)}

    def wrong(blind: float, slips: float) -> list[list[bool]]:
        """By model and vote, whether each proof got a wrong verdict."""
        with Judges(labels, blind=blind, slips=slips, port=0) as judges:
            return [
                [read_answer(judges.answer(asked(proof, model))) != label for proof, label in labels.items()]
                for model in ("one", "one", "other")
            ]

    def asked(proof: str, model: str) -> dict:
        content = f"<proof abc>\n{proof}\n</proof abc>"
        return {"model": model, "messages": [{"role": "user", "content": content}]}

    def read_answer(completion: dict) -> bool:
        return json.loads(completion["choices"][0]["message"]["content"])["proof_correct"]

    first, again, other = wrong(blind=0.3, slips=0)
    assert first == again != other  # a model overlooks the same thing again
    assert 250 < sum(first) < 350
    first, again, _ = wrong(blind=0, slips=0.3)
    assert first != again
    assert 250 < sum(first) < 350
    with Judges(labels, blind=0, slips=0, port=0) as judges:
        assert judges.answer(asked("another proof", "one")) is None


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


def test_the_similarities_of_the_duplicates_page_are_those_of_its_problems():
    page = " ".join((ROOT / "docs/concepts/duplicates.md").read_text(encoding="utf-8").split())
    one, other, third = re.findall(r'"((?:Prove|Show) that [^"]+)"', page)
    assert similarity(blind(one), blind(other), WEIGHTS) == pytest.approx(4 / 4.125)
    assert similarity(blind(one), blind(third), WEIGHTS) == pytest.approx(1 / 8.125)
