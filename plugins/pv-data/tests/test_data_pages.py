"""Numbers that the pages on data show."""

from __future__ import annotations

import json
import re

import pytest
from places import ROOT

from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similarity
from pv_data.simulated_judges import Judges


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


def test_the_similarities_of_the_duplicates_page_are_those_of_its_problems():
    page = " ".join((ROOT / "docs/concepts/duplicates.md").read_text(encoding="utf-8").split())
    one, other, third = re.findall(r'"((?:Prove|Show) that [^"]+)"', page)
    assert similarity(blind(one), blind(other), WEIGHTS) == pytest.approx(4 / 4.125)
    assert similarity(blind(one), blind(third), WEIGHTS) == pytest.approx(1 / 8.125)
