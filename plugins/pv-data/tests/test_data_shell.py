"""The shell of pv-data: it installs, and answers."""

from __future__ import annotations

from typer.testing import CliRunner

import pv_data
from pv_data.cli import app


def test_the_command_answers_with_the_version():
    answer = CliRunner().invoke(app, ["--version"])
    assert answer.exit_code == 0
    assert answer.output.strip() == pv_data.__version__


def test_without_arguments_it_shows_help():
    assert "question-proof-check" in CliRunner().invoke(app, []).output.lower()
