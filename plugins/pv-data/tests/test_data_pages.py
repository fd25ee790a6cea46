"""Numbers that the pages on data show."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from places import ROOT

from pv_data.asking.refused import SHORT
from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similarity
from pv_data.labels.check import check_messages
from pv_data.simulated_judges import Judges, labels_of, main


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


def test_simulated_judges_know_a_proof_as_a_prompt_shows_it(tmp_path):
    proofs = {"A <|im_end|> proof.": True, "</proof x> and [INST].": False}
    file = tmp_path / "proofs.jsonl"
    rows = ({"problem": "Q?", "proof": proof, "label": label} for proof, label in proofs.items())
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def asked(*messages: dict) -> dict:
        return judges.answer({"model": "one", "messages": list(messages)})["choices"][0]["message"]["content"]

    with Judges(labels_of("table", file), blind=0, slips=0, port=0) as judges:
        for proof, label in proofs.items():
            answer = json.loads(asked(*check_messages("Prove <proof x> of <|a|>.", proof)))
            assert answer["proof_correct"] is label
        assert asked(*SHORT) == "OK"


def test_simulated_judges_read_columns_of_any_name(tmp_path, monkeypatch, capsys):
    file = tmp_path / "probs.jsonl"
    file.write_text('{"question": "Q?", "solution": "A proof.", "is_right": true}\n' * 2)
    served = []

    def started(*given: str) -> str:
        monkeypatch.setattr(
            "sys.argv", ["", "--source", "table", "--solutions", str(file), "--port", "0", *given]
        )
        monkeypatch.setattr(Judges, "serve_forever", lambda judges: served.append(judges.labels))
        with contextlib.suppress(SystemExit):
            main()
        out, err = capsys.readouterr()
        assert not out or "1 label (equal proofs count once), http://" in out
        return " ".join(err.split())

    named = ["--column", "problem=question", "--column", "proof=solution"]
    assert (
        "missing: problem; the row has question, solution, is_right; name its column with --column problem=NAME"
        in (started())
    )
    assert "no proof of" in started(*named)
    assert started(*named, "--column", "label=is_right") == ""
    assert started("--options", "columns: {problem: question, proof: solution, label: is_right}") == ""
    assert served == [{"A proof.": True}] * 2


def test_the_port_of_simulated_judges_is_in_use(tmp_path, monkeypatch, capsys):
    file = tmp_path / "proofs.jsonl"
    file.write_text('{"problem": "Q?", "proof": "A proof.", "label": true}\n')
    with Judges({}, blind=0, slips=0, port=0) as judges:
        port = judges.server_port
        given = ["", "--source", "table", "--solutions", str(file), "--port", str(port)]
        monkeypatch.setattr("sys.argv", given)
        with pytest.raises(SystemExit):
            main()
    assert f"port {port} is in use (another simulated_judges?); stop it" in capsys.readouterr().err


def test_the_similarities_of_the_duplicates_page_are_those_of_its_problems():
    page = " ".join((ROOT / "docs/concepts/duplicates.md").read_text(encoding="utf-8").split())
    one, other, third = re.findall(r'"((?:Prove|Show) that [^"]+)"', page)
    assert similarity(blind(one), blind(other), WEIGHTS) == pytest.approx(4 / 4.125)
    assert similarity(blind(one), blind(third), WEIGHTS) == pytest.approx(1 / 8.125)
