"""The numbers of docs/concepts/audit.md."""

from __future__ import annotations

from places import ROOT

import pv_data.audit
from pv_data.audit import compare, usual_plans

PAGE = ROOT / "docs" / "concepts" / "audit.md"


def test_the_page_has_the_numbers_of_the_papers_plan():
    paper = compare(usual_plans(600), 600, agreements=(0.8, 0.9, 0.95)).plans[0]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for number in (*(f"{100 * at.accept:.1f} %" for at in paper.at), f"bound {paper.bound:.4f}"):
        assert number in page


def test_every_public_name_is_there():
    assert all(hasattr(pv_data.audit, name) for name in pv_data.audit.__all__)
    assert pv_data.audit.__all__ == sorted(pv_data.audit.__all__)
