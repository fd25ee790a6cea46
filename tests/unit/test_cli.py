"""The command line without the trainer: help, versions, and mistakes that are answered at once."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from pv_rl import __version__
from pv_rl.cli import app

runner = CliRunner()


def test_help_lists_the_commands():
    answer = runner.invoke(app, ["--help"])
    assert answer.exit_code == 0
    assert all(name in answer.output for name in ("quickstart", "doctor"))


def test_version_is_the_packages():
    assert runner.invoke(app, ["--version"]).output.strip() == __version__


def test_a_command_that_is_not_installed_names_its_package(monkeypatch):
    monkeypatch.setattr(app, "registered_commands", [])
    answer = CliRunner().invoke(app, ["train", "run=8b"])
    assert answer.exit_code == 2
    text = " ".join(re.sub(r"[^\w./-]+", " ", answer.output).split())
    assert "train comes with the package pv-runs which is not installed" in text
    assert "pip install ./plugins/pv-judge ./plugins/pv-runs" in text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--mode", "balancd"], "Did you mean balanced"),
        (["--steps", "0"], "--steps is 0; give 1 or more"),
        (["--seed", "-1"], "--seed is -1; give 0 or more"),
    ],
)
def test_quickstart_refuses_a_mistake_before_it_makes_a_folder(options, text, tmp_path):
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    answer = runner.invoke(app, ["quickstart", "--out", str(tmp_path / "run"), *options])
    assert answer.exit_code == 1
    assert text in " ".join(answer.stderr.split())
    assert not (tmp_path / "run").exists()


def test_quickstart_leaves_a_folder_that_is_in_use_alone(tmp_path):
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    (tmp_path / "precious").write_text("keep me")
    answer = runner.invoke(app, ["quickstart", "--out", str(tmp_path)])
    assert answer.exit_code == 1
    assert "not empty" in answer.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_quickstart_says_in_a_line_that_a_folder_cannot_be_made(tmp_path):
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    (tmp_path / "file").write_text("")
    for out, text in ((tmp_path / "file", "is a file"), (tmp_path / "file" / "sub", "Not a directory")):
        answer = runner.invoke(app, ["quickstart", "--out", str(out)])
        assert answer.exit_code == 1
        assert text in answer.stderr
        assert "Traceback" not in answer.output
