"""`pv-data audit`, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pv_data.audit.command import app


def _ask(*arguments: str, code: int = 0) -> str:
    answer = CliRunner().invoke(app, list(arguments))
    assert answer.exit_code == code, answer.output
    return answer.output


def test_bound_says_the_papers_number():
    said = _ask("bound", "27", "30")
    assert "27 of 30 agree (90.00%)" in said
    assert "at least  0.7907" in said
    assert "between   0.7614 and 0.9722" in said  # binomtest(27, 30).proportion_ci(0.9)


def test_bound_for_many_slices_and_for_a_slice_that_ends():
    assert "at least  0.6846" in _ask("bound", "27", "30", "--slices", "18")
    assert "at least  0.9000" in _ask("bound", "27", "30", "--population", "30")


def test_plan_compares_and_writes(tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture, figures = tmp_path / "plans.png", tmp_path / "plans.json"
    said = _ask(
        "plan", "--slice-size", "600", "--agreement", "0.8", "--agreement", "0.95", "--minutes", "12",
        "--plot", str(picture), "--json", str(figures),
    )  # fmt: skip
    for part in ("27 of 30", "12.3%", "93.9%", "81.6%", "0.7907", "29 of 32", "6.0", "80%", "95%"):
        assert part in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    written = json.loads(figures.read_text())
    assert written["agreements"] == [0.8, 0.95]
    assert [len(one["at"]) for one in written["plans"]] == [2] * 6
    assert written["plans"][0]["at"][1]["accept"] == pytest.approx(0.9392, abs=5e-5)


def test_json_on_standard_output_is_nothing_but_json():
    assert json.loads(_ask("plan", "--agreement", "0.9", "--json", "-"))["size"] == 1440


def test_a_finite_slice_leaves_out_plans_that_read_more_than_there_is():
    said = _ask("plan", "--slice-size", "30", "--finite", "--agreement", "0.9")
    assert "left out, they read more than 30 proofs: fixed; fixed, curtailed; sprt" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bound", "31", "30"], "agree is 31 of 30 checked"),
        (["bound", "27", "30", "--confidence", "90"], "confidence is 90.0"),
        (["plan", "--good", "0.7"], "give bad below good"),
        (["plan", "--agreement", "80"], "agreement is 80"),
        (["plan", "--minutes", "nan"], "minutes is nan"),
        (["plan", "--plot", "plans.txt"], "use one of .png"),
        (["plan", "--json", "no/such/folder.json"], "there is no folder no/such"),
    ],
)
def test_what_cannot_be_is_one_line(arguments: list[str], says: str):
    said = _ask(*arguments, code=1)
    assert says in said
    assert len(said.strip().splitlines()) == 1


def _loaded(statement: str) -> set[str]:
    heavy = "{'numpy', 'scipy', 'matplotlib', 'pyarrow', 'torch', 'verl'}"
    code = f"{statement}\nimport sys\nprint(*({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_the_command_loads_nothing_heavy():
    assert _loaded("import pv_data.audit.command") == set()


def test_the_test_above_can_fail():
    assert "scipy" in _loaded("from pv_data.audit import lower_bound; lower_bound(1, 2)")
