"""MkDocs hook: the reference, from the programs' `--help`, Hydra groups, tables of metrics and sets, and docstrings."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PROGRAMS = {"pv-rl": "pv_rl.cli", "pv-data": "pv_data.cli", "pv-eval": "pv_eval.cli"}
METRICS = ROOT / "plugins/pv-runs/src/pv_runs/metrics.csv"
CONFIGS = (ROOT / "hydra_configs", ROOT / "plugins/pv-cpu/src/pv_cpu/hydra_configs")
MODULES = {
    "pv_rl": (
        "pv_rl.losses",
        "pv_rl.rewards",
        "pv_rl.verdict",
        "pv_rl.errors",
        "pv_rl.hookspecs",
        "pv_rl.trainer_hooks",
        "pv_rl.step_state",
        "pv_rl.reward_hooks",
    ),
    "pv_judge": (
        "pv_judge.client",
        "pv_judge.config",
        "pv_judge.answer",
        "pv_judge.json_answer",
        "pv_judge.veto",
        "pv_judge.ledger",
        "pv_judge.pages.blocks",
        "pv_judge.pages.writing",
    ),
    "pv_verdicts": ("pv_verdicts", "pv_verdicts.hookspecs", "pv_verdicts.rewards"),
    "pv_data": (
        "pv_data.records",
        "pv_data.hookspecs",
        "pv_data.plugins",
        "pv_data.run.config",
        "pv_data.methods.base",
        "pv_data.audit",
        "pv_data.splits",
    ),
    "pv_eval": ("pv_eval", "pv_eval.graded"),
    "pv_trainers": (
        "pv_trainers.trl",
        "pv_trainers.trl_rewards",
        "pv_trainers.skyrl",
        "pv_trainers.areal",
        "pv_trainers.openrlhf",
        "pv_trainers.tinker",
        "pv_trainers.nemo_rl",
        "pv_trainers.prime_rl",
    ),
}
"""The public modules of each package: what a plugin, or a program of yours, imports."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of reference/."""
    pages = {
        "reference/configs.md": _configs(),
        "reference/metrics.md": _metrics(),
        "reference/sets.md": _sets(),
    }
    pages |= {f"reference/{name}.md": _program(name, module) for name, module in PROGRAMS.items()}
    pages |= {f"reference/{package}.md": _package(package, names) for package, names in MODULES.items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def _package(package: str, modules: tuple[str, ...]) -> str:
    return f"# {package}\n\n" + "".join(f"::: {name}\n\n" for name in modules)


def _program(name: str, module: str) -> str:
    """The `--help` of a program and of each of its commands."""
    command = typer.main.get_command(importlib.import_module(module).app)
    parts = [f"# {name}\n\nThe output of `--help`, command by command.\n"]
    for path, text in _help(command, name, None):
        parts.append(f"## {path}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def _help(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    command.rich_markup_mode = None  # plain text: a terminal's frames do not fit a page
    context = command.context_class(command, info_name=name, parent=parent, max_content_width=100)
    context.terminal_width = 100
    yield context.command_path, command.get_help(context)
    for child, sub in getattr(command, "commands", {}).items():
        yield from _help(sub, child, context)


def _configs() -> str:
    """Every option of every Hydra group, with its comments."""
    parts = [
        "# Hydra groups\n\nThe files that `GROUP=OPTION` selects, with their comments. In a command of verl, add "
        "`hydra.searchpath=[pkg://pv_rl.hydra_configs]`; for `cluster=cpu`, `pkg://pv_cpu.hydra_configs`.\n"
    ]
    groups = sorted({path.name for root in CONFIGS for path in root.iterdir() if any(path.glob("*.yaml"))})
    for group in groups:
        parts.append(f"## {'run' if group == 'runs' else group}\n")
        for path in sorted(path for root in CONFIGS for path in (root / group).glob("*.yaml")):
            shown = "run" if group == "runs" else group
            text = path.read_text(encoding="utf-8")
            parts.append(f"### {shown}={path.stem}\n\n```yaml\n{text.strip()}\n```\n")
    return "\n".join(parts)


def _metrics() -> str:
    """Name, meaning and unit of every metric."""
    with METRICS.open(encoding="utf-8", newline="") as file:
        rows = [f"| `{row['name']}` | {row['meaning']} | {row['unit']} |" for row in csv.DictReader(file)]
    return "# Metrics\n\n| metric | meaning | unit |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _sets() -> str:
    """The sets that pv-data can download, and those that pv-eval knows."""
    from pv_data.plugins import SOURCES
    from pv_data.sources.presets import published
    from pv_eval.sets.published import table_of_sets
    from pv_judge.pages.markdown import to_markdown

    rows = [
        f"| `{one.name}` | [{SOURCES.entries()[one.name].meaning}]({one.page}) | {one.licence} | "
        f"{', '.join(f'`{file.path}`' for file in one.files)} |"
        for one in published().values()
    ]
    return (
        "# Published sets\n\n## For pv-data\n\n`pv-data sources --get KIND` downloads these files.\n\n"
        "| kind | set | licence | files |\n|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
        f"## For pv-eval\n\nThe table of `pv-eval sets`.\n\n{to_markdown([table_of_sets()])}"
    )
