"""The examples, commands and numbers of docs/guides/audit.md and docs/concepts/audit.md."""

from __future__ import annotations

import doctest
import re
import shlex

import pytest
from places import ROOT
from typer.testing import CliRunner

import pv_data.audit
from pv_data.audit import compare, usual_plans
from pv_data.audit.command import app

GUIDE = ROOT / "docs" / "guides" / "audit.md"
PAGE = ROOT / "docs" / "concepts" / "audit.md"


def test_its_examples_say_what_they_say():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0


COMMANDS = re.findall(r"^ {4}pv-data audit (.+)$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_run(command: str):
    assert CliRunner().invoke(app, shlex.split(command, comments=True)).exit_code == 0


def test_the_page_has_the_numbers_of_the_papers_plan():
    paper = compare(usual_plans(600), 600, agreements=(0.8, 0.9, 0.95)).plans[0]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for number in (*(f"{100 * at.accept:.1f} %" for at in paper.at), f"bound {paper.bound:.4f}"):
        assert number in page


def test_every_public_name_is_there():
    assert all(hasattr(pv_data.audit, name) for name in pv_data.audit.__all__)
    assert pv_data.audit.__all__ == sorted(pv_data.audit.__all__)
