"""Each block of each page parses, and each of its commands has the options that it is given, without running any."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import doc_setups
import pytest
import typer
import yaml
from doc_pages import pages, read_blocks
from places import ROOT
from typer.main import get_command

from pv_data.run.config import read_run
from pv_judge.config import read_config

PARSERS = {"pv-rl": "pv_rl.cli", "pv-data": "pv_data.cli", "pv-eval": "pv_eval.cli"}
ABSENT = re.compile("does not exist|is a directory|is a file")
INLINE = re.compile(r"(?<!At that commit, )`(pv-(?:rl|data|eval) (?!was )[^`]+)`")
BLOCKS = [block for page in pages() for block in read_blocks(ROOT / page)]


UsageError = typer.BadParameter.__bases__[0]
"""Of the click that typer uses: newer releases bring their own."""


@cache
def parser(program: str) -> Any:
    return get_command(importlib.import_module(PARSERS[program]).app)


def words(command: str) -> list[str]:
    """The first program of a command and its arguments, without the variables that are set for it."""
    tokens = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|&;<>")
    tokens.whitespace_split, found = True, []
    for token in tokens:
        if re.fullmatch(r"[|&;<>]+", token):
            break
        found.append(token)
    while found and re.match(r"[A-Z_]+=", found[0]):
        found.pop(0)
    return found


def check_ours(program: str, *arguments: str) -> None:
    """Let the command's own parser read the arguments; a file that is not here is no mistake."""
    command, name, given = parser(program), program, list(arguments)
    context = command.context_class(command, info_name=program)
    while hasattr(command, "resolve_command") and given and not given[0].startswith("-"):
        name, command, given = command.resolve_command(context, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command.context_class, "exit", lambda *_: None)
        patch.setattr("typer.completion.install", lambda **_: ("bash", "nowhere"))  # of this user
        patch.setattr("typer.completion.sys.exit", lambda *_: None)
        try:
            command.make_context(name, given, parent=context)
        except typer.BadParameter as error:
            if is_missing(error) or not ABSENT.search(error.message):
                raise


def is_missing(error: Exception) -> bool:
    return type(error).__name__ == "MissingParameter"


def check_program(*given: str) -> None:
    """A script of the clone, or a module of ours, has each option somewhere in its source."""
    if given[:1] == ("-m",):
        if not given[1].startswith("pv_lab"):
            return
        found = importlib.util.find_spec(given[1])
        assert found is not None, f"there is no module {given[1]}"
        files = [*Path(found.origin).parent.glob("*.py")]
    elif given[:1] and given[0].startswith(("benchmarks/", "examples/", "plugins/", "tests/")):
        assert (ROOT / given[0]).is_file(), f"there is no file {given[0]}"
        files = [ROOT / given[0]]
    else:
        return
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    for option in (word.partition("=")[0] for word in given if word.startswith("--")):
        assert option in source or option[2:].replace("-", "_") in source, f"there is no option {option}"


def check(command: str, place: str, *, whole: bool = True) -> None:
    """Fail with the place of a command that cannot be right. Without `whole`, it may lack arguments."""
    try:
        check_words(*words(command))
    except (AssertionError, UsageError, ValueError) as error:
        if whole or not is_missing(error):
            pytest.fail(f"{place}: {command}\n{error}")


def check_words(program: str = "", *arguments: str) -> None:
    if program in PARSERS:
        check_ours(program, *arguments)
    elif program.rpartition("/")[2] in ("python", "python3"):
        check_program(*arguments)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in arguments if "=" not in word} <= set(targets)
    elif program == "pip" and arguments[0] == "install":
        for place in (
            word.partition("[")[0] for word in arguments if re.match(r"\.|plugins/|examples/", word)
        ):
            assert "{" in place or (ROOT / place / "pyproject.toml").is_file(), (
                f"there is no package in {place}"
            )


def check_settings(settings: dict[str, Any]) -> None:
    """Settings of a judge, or of a run of pv-data, are accepted."""
    if "judge" in settings:
        read_config(settings["judge"])
    elif settings.keys() & {"models", "generate", "panel"}:
        writer = {"endpoints": [{"url": "http://127.0.0.1/v1", "model": "m"}]}
        given = {"run_dir": "r", "sources": [{"kind": "table", "path": "p"}], "models": {"writer": writer}}
        read_run({**given, **settings})


@pytest.mark.parametrize("page", pages())
def test_a_page_parses_and_its_commands_have_the_options_that_they_are_given(page: str) -> None:
    for block in read_blocks(ROOT / page):
        assert block.text, f"{block.place}: a mark without a block behind it"
        assert block.kind != "text" or "not run" not in block.marks, (
            f"{block.place}: nothing to run, so no mark"
        )
        for name in block.marks.get("setup", "").split():
            assert hasattr(doc_setups, name), f"{block.place}: doc_setups has no {name}"
        if block.kind == "yaml":
            check_settings(yaml.safe_load(block.text))
        elif block.kind == "python":
            compile(block.text, block.place, "exec")
        for command in block.commands:
            check(command, block.place)
    for command in INLINE.findall((ROOT / page).read_text(encoding="utf-8")):
        check(" ".join(command.split()), page, whole=False)


def test_the_scripts_of_all_pages_are_bash() -> None:
    scripts = "\n".join(f"# {block.place}\n" + "\n".join(block.commands) for block in BLOCKS)
    done = subprocess.run(["bash", "-n"], input=scripts, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
