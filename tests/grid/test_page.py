"""docs/internals/exactness.md is of the grid that is here."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from places import ROOT

pytest.importorskip("torch", reason="torch is not installed: pip install 'pv-rl[torch]'")
from grid.fixed import fixed_grid

PAGE = ROOT / "docs" / "internals" / "exactness.md"


def test_the_page_has_every_family_with_all_its_cases():
    table = PAGE.read_text().partition("## Every trainer")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    written = {name: int(cases) for name, cases in re.findall(r"([^; ][^;]*) \((\d+)\)", ";".join(cells))}
    assert written == Counter(case.family for case in fixed_grid())
