"""Errors and warnings name settings, options and commands that exist."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import typer

import pv_data
from pv_data.asking.settings import Model
from pv_data.cli import app
from pv_data.plugins import METHODS, SOURCES
from pv_data.run.config import RunConfig

PACKAGE = Path(pv_data.__file__).parent
DOTTED = re.compile(r"(?<![\w./])([a-z_]+(?:\[[^\]\s]*\])?(?:\.[A-Za-z_{}]+(?:\[[^\]\s]*\])?)+)(?!\w|/)")
GIVEN = re.compile(r"(?<![\w./`-])([a-z_]+(?:\.[a-z_]+)*)=(?=[\w\[{])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r"pv-data ((?:run|audit|sources|methods|contamination)(?: [a-z]+)?)")
FILES = ("json", "jsonl", "md", "parquet", "sqlite", "csv", "index")
PYTHON = {"shard_rows", "threshold", "problem"}
"""Parameters of functions that users call from Python, and a column of `sources --try`."""


def strings() -> Iterator[tuple[str, str]]:
    """Every text with a space in the package but docstrings; a value of an f-string is `{}`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        skip = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skip |= set(map(id, node.values))
        for node in ast.walk(tree):
            if id(node) in skip:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
                )
            else:
                continue
            if " " in text:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


def options() -> set[str]:
    """Of all commands of pv-data, and of pv_data.simulated_judges as its help lists them."""

    def of(command: Any) -> Iterator[str]:
        for parameter in command.params:
            yield from parameter.opts
        for other in getattr(command, "commands", {}).values():
            yield from of(other)

    judges = [sys.executable, "-m", "pv_data.simulated_judges", "--help"]
    said = subprocess.run(judges, check=True, capture_output=True, text=True).stdout
    return set(of(typer.main.get_command(app))) | set(OPTION.findall(said))


def commands() -> set[str]:
    found = set[str]()
    for name, command in typer.main.get_command(app).commands.items():
        found |= {name} | {f"{name} {one}" for one in getattr(command, "commands", {})}
    return found


def exists(name: str, kind: Any) -> bool:
    """Whether settings of a kind have a name such as `models.NAME.limits.concurrency`."""
    for part in re.split(r"[.\[]", name.replace("]", "")):
        if get_origin(kind) in (Union, UnionType):
            kind = next(one for one in get_args(kind) if one is not type(None))
        if is_dataclass(kind):
            hints = get_type_hints(kind)
            if part not in hints:
                return False
            kind = hints[part]
        elif get_origin(kind) in (dict, tuple):
            kind = get_args(kind)[-1 if get_origin(kind) is dict else 0]
        elif kind is not Any:
            return False
    return True


def parameters() -> set[str]:
    """Options of sources and methods, and settings without what they are part of."""
    found = set(PYTHON) | {field.name for field in fields(RunConfig)}
    for name in SOURCES.entries():
        found |= set(inspect.signature(SOURCES.named(name).read).parameters)
    return found


TOP, OPTIONS, COMMANDS, PARAMETERS = (
    {field.name for kind in (RunConfig, Model) for field in fields(kind)} | {"options"},
    options(),
    commands(),
    parameters(),
)


def unknown(text: str) -> list[str]:
    """Names in a message that nothing has."""
    found = [one for one in OPTION.findall(text) if one not in OPTIONS and "vllm" not in text]
    found += [one for one in COMMAND.findall(text) if one not in COMMANDS and one.split()[0] not in COMMANDS]
    found += [one for one in COMMAND.findall(text) if one.startswith("audit ") and one not in COMMANDS]
    for name in [*DOTTED.findall(text), *(one for one in GIVEN.findall(text) if "." in one)]:
        top = re.split(r"[.\[]", name)[0]
        if name.rpartition(".")[2] in FILES or top not in TOP | {"judge"} or top == "options":
            continue
        if not exists(name, RunConfig) and not exists(name, Model):
            found.append(name)
    return found + [one for one in GIVEN.findall(text) if "." not in one and one not in PARAMETERS]


def test_messages_name_settings_options_and_commands_that_exist():
    checked = list(strings())
    assert len(checked) > 500
    assert {where: names for where, text in checked if (names := unknown(text))} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("set retry_asside=true and run again", ["retry_asside"]),
        ("split.hold_out_audit=false keeps it", ["split.hold_out_audit", "split.hold_out_audit"]),
        ("Raise models.{}.limit.concurrency now", ["models.{}.limit.concurrency"]),
        ("generate[{}].smples was 1", ["generate[{}].smples"]),
        ("name another file in judge.cache", ["judge.cache"]),
        ("give --pilots or --redo", ["--pilots"]),
        ("see pv-data audit drew", ["audit drew"]),
        ("sources[{}].options.columns, models.NAME.cache, budget_usd=5 and --export-only are there", []),
    ],
)
def test_the_check_finds_names_that_do_not_exist(text, names):
    assert unknown(text) == names


@pytest.mark.parametrize("method", ["augment", "style", "translate", "mask_completion", "naive_negative"])
def test_the_options_that_errors_of_methods_name_are_options(method):
    text = next(text for _, text in strings() if re.search(rf"options\.\w+ of {method}\b", text))
    (option,) = re.findall(r"options\.(\w+) of", text)
    assert option in inspect.signature(METHODS.named(method).build).parameters
