"""Numbers that the pages on data show."""

from __future__ import annotations

import re

import pytest
from places import ROOT

from pv_data.duplicates.blind import WEIGHTS, blind
from pv_data.duplicates.pairs import similarity


def test_the_similarities_of_the_duplicates_page_are_those_of_its_problems():
    page = " ".join((ROOT / "docs/concepts/duplicates.md").read_text(encoding="utf-8").split())
    one, other, third = re.findall(r'"((?:Prove|Show) that [^"]+)"', page)
    assert similarity(blind(one), blind(other), WEIGHTS) == pytest.approx(4 / 4.125)
    assert similarity(blind(one), blind(third), WEIGHTS) == pytest.approx(1 / 8.125)
