"""The runner of pages tells what each block is, runs it, and fails where a page is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from doc_env import link_packages, wheel_of
from doc_pages import Block, pages, read_blocks, statements
from doc_runner import CHECKED, PageRun, adapted


def block(text: str, language: str = "", **marks: str) -> Block:
    return Block(page="page.md", line=1, language=language, text=text, marks=marks)


@pytest.fixture
def page(tmp_path):
    """A page in the environment of the tests."""
    (tmp_path / "clone").mkdir()
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    machine = SimpleNamespace(folder=tmp_path, clone=tmp_path / "clone", wheels=tmp_path, environment={})
    with PageRun("docs/concepts/rules.md", machine, tmp_path / "page") as run:
        yield run


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pip install .", "shell"),
        ("OUT=out bash run.sh", "shell"),
        ("head$ ray start", "shell"),
        ('{"a": 1}\n\npv-rl score x', "shell"),
        ("export.csv  a file", "text"),
        ("+recipe=balanced \\\nrecipe.eta=0.3", "overrides"),
        ("loss = sum_i w_i * x_i", "text"),
        (">>> 1 + 1\n2", "doctest"),
        ("from a import b\nb(1)", "python"),
        ("judge:\n  model: m", "yaml"),
        ("a table  of words", "text"),
    ],
)
def test_a_block_is_told_by_its_text(text: str, kind: str):
    assert block(text).kind == kind


def test_commands_and_what_they_are_shown_to_print_are_told_apart():
    found = block("a: 1\n\n$ pv-data run x.yaml\n1 row\n\n2 rows\n\npv-rl plan \\\n  run=8b   # note\n\nfits")
    before, commands = found.parts
    assert before == "a: 1"
    assert [(code, [line for line in printed if line]) for code, printed in commands] == [
        ("pv-data run x.yaml", ["1 row", "2 rows"]),
        ("pv-rl plan \\\n  run=8b   # note", ["fits"]),
    ]
    assert list(statements("cat > x <<'END'\na\nEND\n# note\nb")) == ["cat > x <<'END'\na\nEND", "b"]


def test_a_mark_belongs_to_the_next_block_and_to_nothing_else(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "<!-- not run: x -->\n\n    pip install a\n\n    pip install b\n\ntext\n\n```sh\nmake\n```\n"
    )
    (one, other) = read_blocks(path)
    assert (one.text, one.marks, one.line) == ("pip install a\n\npip install b", {"not run": "x"}, 3)
    assert (other.text, other.marks, other.language) == ("make", {}, "sh")
    path.write_text("<!-- not run: x -->\n\ntext\n\n    pip install a\n")
    assert [found.text for found in read_blocks(path)] == ["", "pip install a"]


@pytest.mark.parametrize(
    ("command", "runs", "reason"),
    [
        ("pv-rl plan run=8b", "pv-rl plan run=8b", ""),
        (
            "pv-rl train run=8b x=1",
            CHECKED.format("pv-rl train", " run=8b x=1"),
            "settings checked, not trained",
        ),
        (
            "pv-rl train --check run=8b",
            CHECKED.format("pv-rl train", " run=8b"),
            "settings checked, not trained",
        ),
        ("pv-rl train --resume RUN", "pv-rl train --resume RUN", ""),
        (
            "A=1 python -m verl.trainer.main_ppo ... x=1",
            "A=1 python -m verl.trainer.main_ppo --cfg job x=1 > /dev/null",
            "config composed, not trained",
        ),
        ("python -m pv_lab.x --device cuda", "", "needs a GPU"),
        ("ssh HOST pv-rl watch RUN", "", "needs another machine"),
    ],
)
def test_a_command_that_cannot_run_here_is_left_out_or_composed(command: str, runs: str, reason: str):
    assert adapted(command) == (runs, reason)


def test_a_block_continues_where_the_one_before_ended(page):
    page.run(block("mkdir sub; cd sub; export WORD='two\nlines'", "sh"))
    page.before["echo after"] = lambda: (page.folder / "made").write_text("x")
    script = 'echo before\necho after; cat made; echo "$WORD"'
    assert page.run(block(f"{script}\n\nbefore\n\nxtwo\nlines")) == ("run", [])
    assert page.printed == "before\nafter\nxtwo\nlines\n"


@pytest.mark.parametrize(
    ("text", "language", "error"),
    [
        ("echo a; false; echo b", "sh", "page.md:1: exit code 1"),
        ("false | cat", "sh", "failed: cat"),
        ("echo 1  row\n\n2 rows", "", "not printed: 2 rows"),
        ("[1 + 1]  # [3]", "python", r"\[1 \+ 1\] is \[2\]"),
        (">>> 1 + 1\n3", "", "Expected"),
        ("- a\n- b", "yaml", "no mapping"),
    ],
)
def test_a_page_that_is_wrong_fails(page, text: str, language: str, error: str):
    with pytest.raises(AssertionError, match=error):
        page.run(block(text, language))


def test_a_server_that_a_page_starts_ends_with_it(page, tmp_path):
    page.run(block("sleep 300 & echo $! > pid", "sh"))
    process = int((page.folder / "pid").read_text())
    os.kill(process, 0)
    page.__exit__()
    for _ in range(100):  # the kernel may take a moment
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True
        ).stdout
        if state.strip()[:1] in ("", "Z"):
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"the process is still there: {state}")


def test_marks_give_a_file_and_leave_a_block_out(page):
    assert page.run(block('{"a": 1}', file="rows.jsonl")) == ("run", [])
    assert page.run(block("cat rows.jsonl")) == ("run", [])
    assert page.run(block('{"a": 1}', output="")) == ("run", [])
    (page.folder / "pyproject.toml").symlink_to(page.machine.clone / "pyproject.toml")
    assert page.run(block("a = 1", file="pyproject.toml")) == ("run", [])
    assert page.run(block("b = 2", append="pyproject.toml")) == ("run", [])
    assert page.run(block("true", "sh", then="cat pyproject.toml")) == ("run", [])
    assert page.printed == "a = 1\nb = 2\n"
    assert not (page.machine.clone / "pyproject.toml").exists()
    assert page.run(block("false", **{"not run": "needs a GPU"})) == ("not run", ["needs a GPU"])
    with pytest.raises(AssertionError, match="not printed"):
        page.run(block('{"a": 2}', output=""))


def test_pip_gets_the_wheel_of_a_folder_of_ours_and_no_link_leads_to_a_clone(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "pyproject.toml").write_text('[project]\nname = "pv-x"\n')
    assert wheel_of(f"{tmp_path}/pkg", tmp_path) == f"{tmp_path}/pkg"
    (tmp_path / "pv_x-1-py3-none-any.whl").touch()
    assert wheel_of(f"{tmp_path}/pkg[a]", tmp_path) == f"{tmp_path}/pv_x-1-py3-none-any.whl[a]"
    assert wheel_of("numpy", tmp_path) == "numpy"
    ours = {
        f"pv_{name}" for name in ("rl", "cpu", "data", "eval", "judge", "lab", "runs", "trainers", "verdicts")
    }
    link_packages(tmp_path / "links", ours, [])
    names = {entry.name for entry in (tmp_path / "links").iterdir()}
    assert "pytest" in names
    assert not [name for name in names if "pv_" in name or name.endswith(".pth")]


def test_the_pages_are_those_of_the_repository():
    found = pages()
    assert {"README.md", "docs/guides/verl.md", "plugins/pv-data/README.md", "examples/lab/README.md"} < set(
        found
    )
    assert Path("CHANGELOG.md") not in map(Path, found)
