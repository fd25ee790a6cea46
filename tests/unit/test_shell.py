"""The three programs in a shell: help that fits a screen, completion, exit codes, wrong command lines, YAML schemas."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from pv_rl.errors import DataError
from pv_rl.exits import new_app

ROOT = Path(__file__).parents[2]
PROGRAMS = ("pv-rl", "pv-data", "pv-eval")
NEEDED = ("pv_runs", "pv_judge", "pv_data", "pv_eval", "pv_lab")
for package in NEEDED:
    pytest.importorskip(package, reason="the commands of all packages are tested together")


def program(name: str) -> Any:
    return importlib.import_module(f"{name.replace('-', '_')}.cli").app


def invoke(name: str, line: str, **env: str) -> Any:
    return CliRunner().invoke(program(name), shlex.split(line), prog_name=name, env={"COLUMNS": "80", **env})


def commands(name: str) -> list[tuple[str, Any]]:
    """Path and command, those of groups too."""
    found: list[tuple[str, Any]] = []

    def walk(path: str, command: Any) -> None:
        found.append((path, command))
        for child, sub in getattr(command, "commands", {}).items():
            walk(f"{path} {child}".strip(), sub)

    walk("", get_command(program(name)))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_help_fits_a_screen_and_its_example_is_a_command_line(name):
    for path, command in commands(name):
        lines = invoke(name, f"{path} --help").output.splitlines()
        assert len(lines) <= 24, path
        assert max(map(len, lines)) <= 90, path  # the groups of pv-rl train are one line each
        if hasattr(command, "commands"):
            continue
        example = re.search(r"Example: ((?:.+\n)+)", "\n".join(lines) + "\n")
        assert example is not None, path
        program_of_it, *words = shlex.split(example[1].partition(">")[0])
        groups = dict(commands(program_of_it))
        depth = max(n for n in range(len(words) + 1) if " ".join(words[:n]) in groups)
        assert depth, path
        groups[" ".join(words[:depth])].make_context(
            path, words[depth:]
        )  # raises for a word that it does not take


def test_help_all_shows_the_options_that_help_hides():
    every = {option for one in dict(commands("pv-eval"))["run"].params for option in one.opts}
    assert "--top-p" not in invoke("pv-eval", "run --help").output
    shown = invoke("pv-eval", "run --help-all").output
    assert [one for one in every if one not in shown] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pv-rl wei", "weights"),
        ("pv-rl train run=sf", "run=sft_small"),
        ("pv-rl train run = sf", "sft_small"),  # bash cuts a word at =
        ("pv-rl train --check run=8b cluster=paper", "cluster=paper80"),
        ("pv-rl plan recipe = bal", "balanced"),
        ("pv-rl doctor sentinel=sto", "sentinel=stop"),
        ("pv-rl weights --mode dr_", "dr_grpo"),
        ("pv-rl score --reward verdict_", "verdict_fluency"),
        ("pv-rl quickstart --mode tok", "token_mean"),
        ("pv-rl quickstart --trainer t", "trl"),
        ("pv-rl score --rew", "--reward"),
        ("pv-data run pap", "paper"),
        ("pv-data sources --kind tab", "table"),
        ("pv-data audit draw RUN --to lab", "label-studio"),
        ("pv-eval run --set proofb", "proofbench:"),
        ("pv-eval run --format gra", "grade"),
    ],
)
def test_the_shell_completes_commands_options_and_names(line, found):
    name = line.split()[0]
    env = {f"_{name.replace('-', '_').upper()}_COMPLETE": "complete_bash", "COMP_WORDS": line}
    assert invoke(name, "", COMP_CWORD=str(len(line.split()) - 1), **env).output.split() == [found]
    if " = " not in line:
        env = {next(iter(env)): "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
        assert f'"{found}"'.replace(":", r"\\:") in invoke(name, "", **env).output


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pv-rl weights --mode b", ["balanced", "ba"]),
        ("pv-data run pap", ["paper"]),
        ("pv-eval ru", ["run"]),
    ],
)
def test_completion_imports_nothing_that_takes_long(line, found):
    name = line.split()[0]
    module = name.replace("-", "_")
    slow = (
        "{'torch', 'verl', 'ray', 'pandas', 'numpy', 'hydra', 'asyncio', 'rich.console', 'pv_judge.config'}"
    )
    code = (
        "import os, sys\n"
        f"os.environ['_{module.upper()}_COMPLETE'] = 'complete_bash'\n"
        f"os.environ |= {{'COMP_WORDS': {line!r}, 'COMP_CWORD': '{len(line.split()) - 1}'}}\n"
        f"from {module}.cli import app\n"
        f"try: app(prog_name={name!r})\n"
        f"finally: print(sorted({slow} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:-1] == [*found, "[]"]


WITHOUT_VERL = """
import sys
sys.modules |= dict.fromkeys(sys.argv[1].split(","))  # cannot be imported
from pv_rl.cli import app
from typer.testing import CliRunner
for line in sys.stdin:
    answer = CliRunner().invoke(app, line.split())
    print(answer.exit_code, line.strip(), answer.stderr.replace(chr(10), " "))
"""
READING = [
    "weights --lengths 1,2,5",
    "weights --rollouts rows.jsonl --plot weights.png",
    "watch run --once",
    "watch --metrics run/metrics.jsonl --once",
    "report run",
    "schema",
    "score --rollouts rows.jsonl --reward verdict",
    *(f"{one} --help" for one in ("train", "plan", "rejudge", "doctor", "quickstart")),
]


def test_commands_that_read_files_need_neither_verl_nor_what_it_installs(tmp_path):
    needed = tomllib.loads((ROOT / "plugins/pv-runs/pyproject.toml").read_text())["project"]["dependencies"]
    assert [one for one in needed if "verl" in one] == []
    absent = "verl,ray,transformers,tensordict,pandas,datasets,accelerate,wrapt,transfer_queue"
    row = '{"prompt": "a", "response": "### True", "label": true}\n'
    (tmp_path / "rows.jsonl").write_text(row * 2)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"state": "finished", "attempts": 1}')
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1, "data": {"critic/score/mean": 0.5}}\n')
    lines, command = [*READING, "plan run=8b"], [sys.executable, "-c", WITHOUT_VERL, absent]
    given = {"input": "\n".join(lines), "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
    *read, plan = subprocess.run(command, **given).stdout.splitlines()
    assert [one.strip() for one in read] == [f"0 {line}" for line in READING]
    assert plan.startswith("1 plan run=8b error the runs extend verl's own config, and verl is not installed")


def test_the_modes_that_are_completed_are_ours():
    from pv_rl.plugins import LOSS_MODES
    from pv_runs.commands import MODES

    assert [one.name for one in LOSS_MODES.own()] == MODES


class Stopped(DataError):
    exit_code = 3


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (None, 0, ""),
        (DataError("wrong"), 1, "error wrong\n"),
        (OSError("full"), 1, "error full\n"),
        (
            FileNotFoundError(2, "No such file or directory", "a.csv"),
            1,
            "error a.csv: No such file or directory\n",
        ),
        (FileExistsError(17, "File exists", "out"), 1, "error out: it is a file; name a folder\n"),
        (Stopped("again"), 3, "error again\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (KeyboardInterrupt(), 130, "stopped; nothing is left running\n"),
    ],
)
def test_how_a_command_ends_is_its_exit_code(raised, code, said):
    app = new_app("pv-x", "A program.", {})

    @app.command()
    def one() -> None:
        if raised is not None:
            raise raised

    @app.command()
    def other() -> None:
        raise typer.Exit(1)

    answer = CliRunner().invoke(app, ["one"])
    assert (answer.exit_code, answer.stderr) == (code, said)
    assert CliRunner().invoke(app, ["one", "--no"]).exit_code == 2
    assert CliRunner().invoke(app, ["other"]).exit_code == 1


CONFIG = "run_dir: out\nsources: [{kind: table, path: x.csv}]\n"


@pytest.mark.parametrize(
    ("yaml_text", "line", "said"),
    [
        ("", "pv-data run paper --dry-run", "paper: vars.data_dir has no value. Set it: vars.data_dir=VALUE"),
        (CONFIG, "pv-data run x.yaml split.tests=1 --dry-run", "split.tests: there is no such setting. Did you mean"),
        (CONFIG, "pv-data run x.yaml split --dry-run", "'split' cannot be read. Expected KEY=VALUE"),
        (CONFIG, "pv-data run x.yaml run_dir=a=b --dry-run", "'run_dir=a=b' cannot be read. Expected KEY=VALUE"),
        (CONFIG, "pv-data run x.yaml run_dir= --dry-run", "run_dir: expected a text that is not empty"),
        (CONFIG, "pv-data run x.yaml seed=1,2 --dry-run", "seed has several values."),
        (CONFIG, "pv-data run x.yaml ~no --dry-run", "the config has no no, so that ~no removes nothing"),
        ("run_dir: ${vars.out}\n", "pv-data run x.yaml", "run_dir refers to vars.out, which the config does not have"),
        ("run_dir: ${oc.env:NO_SUCH}\n", "pv-data run x.yaml", "run_dir needs the environment variable NO_SUCH"),
        ("run_dir: ${no:1}\n", "pv-data run x.yaml", "run_dir contains ${no:...}, which does not exist"),
        ("run_dir: ${vars\n", "pv-data run x.yaml", "run_dir contains a ${...} that cannot be read"),
        ("run_dir: ${run_dir}\n", "pv-data run x.yaml", "run_dir refers to itself"),
        ("- a\n", "pv-data run x.yaml", "expected settings by name"),
        ("a: b: c\n", "pv-data run x.yaml", "cannot be read as YAML: line 1, column 5: mapping values"),
        ("defaults: [_self_, no_file]\n", "pv-data run x.yaml", "x.yaml: there is no config no_file"),
        ("defaults: [true]\n", "pv-data run x.yaml", "x.yaml: Unsupported type in defaults"),
        (CONFIG + "panel: [{model: gpt}]\n", "pv-data run x.yaml", "names the model gpt, which `models` does not have"),
        ("", "pv-data audit bound 5 x", "Invalid value for 'checked': expected a whole number\n"),
        ("", "pv-data audit bound 5 9999999999", "'checked': expected a number less than or equal to 1000000000"),
        ("", "pv-data audit plan --slice-size 0", "'--slice-size': expected a number greater than or equal to 1"),
        ("", "pv-data audit bound 1 2 --slices 0", "'--slices': expected a number greater than or equal to 1"),
        ("", "pv-eval run --set a:b --verifier c --out d -n 0", "n is 0; give a whole number, 1 or more"),
        ("", "pv-eval run --set a:b --verifier c --out d --seed -1", "seed is -1; give a whole number, 0 or more"),
        ("", "pv-eval run --set a:b --verifier c --out d --top-p 0", "top_p is 0.0; give a number above 0, up to 1"),
        ("", "pv-rl score --rollouts x.yaml --step 3", "--step 3 is for a folder of rollouts, and x.yaml is a file"),
        ("", "pv-rl score --rollouts x.yaml --set treshold=1", "no option 'treshold'. Did you mean threshold?"),
        ("", "pv-rl watch --metrics x.yaml --responses 0", "responses is 0; give a number of 2 or more"),
        ("", "pv-data audit draw RUN --to excel --out x", "'excel' is not one of 'sheet', 'label-studio'"),
        ("", "pv-data audit status no", "no is not a folder"),
        ("", "pv-rl train --chek run=8b", "pv-rl train has no option --chek. Did you mean --check?"),
        ("", "pv-rl train run=8b trainer.total_epochs", "'trainer.total_epochs' is neither an option nor KEY=VALUE"),
        ("", "pv-rl schema nothing", "no schema describes 'nothing'"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_answered_in_our_words(tmp_path, monkeypatch, yaml_text, line, said):
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(yaml_text)
    answer = invoke(*line.split(" ", 1))
    assert answer.exit_code in (1, 2), answer.output
    assert said in answer.stderr
    assert "See https" not in answer.stderr


def yaml_files() -> list[Path]:
    groups = [ROOT / "hydra_configs", ROOT / "plugins/pv-cpu/src/pv_cpu/hydra_configs"]
    return [path for folder in groups for path in sorted(folder.rglob("*.yaml"))]


def run_errors(text: str, group: str) -> list[str]:
    from pv_runs.config_schema import config_schema

    jsonschema = pytest.importorskip("jsonschema")
    package = re.match(r"# @package (\S+)", text)
    key = package[1] if package else group
    content = yaml.safe_load(text) or {}
    nested = reduce(lambda inner, name: {name: inner}, reversed(key.split(".")), content)
    whole = content if key in ("_global_", "runs") else nested
    checker = jsonschema.Draft202012Validator
    found = [*checker(config_schema()).iter_errors(whole)]
    if key.endswith(".judge") and content:
        found += checker(config_schema(key)).iter_errors(content)
    return [f"{one.json_path}: {one.message}" for one in found]


def test_every_run_and_group_fits_the_schema_of_pv_rl():
    files = yaml_files()
    assert len(files) > 30
    assert {
        str(path): wrong for path in files if (wrong := run_errors(path.read_text(), path.parent.name))
    } == {}
    judge = (ROOT / "hydra_configs/judge/deepseek.yaml").read_text()
    assert run_errors(judge.replace("model:", "modell:"), "judge")
    assert run_errors("recipe: {eta: 2}", "runs")
    assert run_errors("sentinel: {action: halt}", "runs")
    assert run_errors("plan: {train_mfuu: 1}", "runs")
    assert run_errors("cluster: {gpu: {name: H100}}", "runs")


def test_every_config_of_a_data_run_fits_the_schema_of_pv_data():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(invoke("pv-data", "schema").output)
    checker = jsonschema.Draft202012Validator(schema)
    files = sorted((ROOT / "plugins/pv-data/src/pv_data/configs").glob("*.yaml"))
    assert len(files) == 3
    assert [
        one.message for path in files for one in checker.iter_errors(yaml.safe_load(path.read_text()))
    ] == []
    good = yaml.safe_load(CONFIG)
    for wrong in ({"split": {"tests": 0.1}}, {"seed": "a"}, {"sources": [{"kind": "tabel", "path": "x"}]}):
        assert not checker.is_valid(good | wrong)
    assert checker.is_valid(good | {"seed": "${vars.seed}"})
