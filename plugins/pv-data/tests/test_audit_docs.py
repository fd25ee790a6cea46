"""The numbers of docs/concepts/audit.md."""

from __future__ import annotations

from places import ROOT

import pv_data.audit
from pv_data.audit import compare, usual_plans

PAGE = ROOT / "docs" / "concepts" / "audit.md"


def test_its_table_of_plans_is_what_the_command_computes():
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.endswith((" 0.7907 |", " 0.8003 |"))
    ]
    rows += [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.endswith((" 0.8040 |", " 0.8030 |"))
    ]
    computed = set()
    for one in compare(usual_plans(600), 600, agreements=(0.8, 0.9, 0.95, 0.99)).plans:
        accepted = [f"{at.accept:.1%}" for at in one.at]
        read = [f"{one.at[place].expected_checked:.1f}" for place in (0, 2)]
        computed.add(" | ".join([*accepted, *read, str(one.plan.most), f"{one.bound:.4f} |"]))
    assert {row.split(" | ", 1)[1] for row in rows} == computed


def test_every_public_name_is_there():
    assert all(hasattr(pv_data.audit, name) for name in pv_data.audit.__all__)
    assert pv_data.audit.__all__ == sorted(pv_data.audit.__all__)
