"""Marks of questions whose answers hang the parser: they outlive a kill, and a full disk kills nobody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pv_judge.answer import JudgeFailure
from pv_judge.quarantine import Quarantine

KEYS = ["ab" * 32, "cd" * 32]


def test_a_question_that_was_being_parsed_at_a_kill_is_not_asked_again_and_others_are(tmp_path):
    code = f"""
import os, sys
from pv_judge.quarantine import Quarantine
quarantine = Quarantine(sys.argv[1])
quarantine.parser({KEYS[1]!r}, len)("done")
quarantine.parser({KEYS[0]!r}, lambda text: os.kill(os.getpid(), 9))("hangs")
"""
    path = tmp_path / "parsing"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    for _ in range(2):  # also in the start after the next
        quarantine = Quarantine(path)
        with pytest.raises(JudgeFailure, match="not asked again"):
            quarantine.parser(KEYS[0], len)
        assert quarantine.parser(KEYS[1], len)("abc") == 3


def test_a_file_that_cannot_grow_costs_the_mark_and_not_the_answer(tmp_path):
    """As on a full disk. A memory map of the file would kill the process at the first mark."""
    code = f"""
import resource, sys
from pv_judge.quarantine import Quarantine
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
print(Quarantine(sys.argv[1]).parser({KEYS[0]!r}, len)("abc"))
"""
    child = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "parsing")], capture_output=True, text=True, check=False
    )
    assert (child.returncode, child.stdout) == (0, "3\n"), child.stderr
