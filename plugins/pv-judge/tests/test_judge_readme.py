"""The README's commands and its program run as they are written, against a local server; so do settings of a page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml
from judge_server import JudgeServer
from places import ROOT
from typer.testing import CliRunner

from pv_judge.config import read_config
from pv_rl.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text()
URL = "http://127.0.0.1:8000/v1"


def test_the_commands_score_rollouts_and_replay_their_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (row,) = (line.strip() for line in README.splitlines() if line.strip().startswith('{"output"'))
    Path("rollouts.jsonl").write_text(row + "\n")
    text = README.replace("\\\n", " ")
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("pv-rl ")]
    assert [command.split()[1] for command in commands] == ["score", "rejudge"]
    with JudgeServer() as server:
        for command in commands:
            result = CliRunner().invoke(app, shlex.split(command.replace(URL, server.url))[1:])
            assert result.exit_code == 0, result.output
        assert len(server.chats()) == 1


def test_the_program_prints_an_answer(tmp_path):
    code = README.split("```python\n")[1].split("```")[0]
    with JudgeServer() as server:
        run = subprocess.run(
            [sys.executable, "-c", code.replace(URL, server.url)], capture_output=True, text=True, timeout=120
        )
    assert run.returncode == 0, run.stderr
    assert "completion_tokens" in run.stdout


def test_the_judge_of_the_page_on_rewards_is_accepted():
    page = (ROOT / "docs" / "guides" / "rewards.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^    judge:\n(?:      .*\n)+", page, flags=re.MULTILINE)
    assert read_config(yaml.safe_load(block)["judge"]).budget.usd_per_run == 300
