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


def test_an_error_shows_control_characters_of_a_name_as_escapes(tmp_path):
    answer = CliRunner().invoke(app, ["audit", "status", str(tmp_path / "\x1b[2Jrun")])
    assert answer.exit_code == 1
    assert "\\x1b[2Jrun" in answer.output
    assert "\x1b" not in answer.output
