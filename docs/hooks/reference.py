"""MkDocs hook: the reference, from `--help`, Hydra groups, docstrings, and tables of metrics, rules, signs and sets."""

from __future__ import annotations

import csv
import importlib
import math
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files

from pv_rl.hookspecs import Parameter
from pv_rules import RULES
from pv_runs.sentinel.detectors import DETECTORS

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
    "pv_runs": ("pv_runs.plan.assumed", "pv_runs.sentinel"),
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
    pages |= {"reference/rules.md": _rules(), "reference/signs.md": _signs()}
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
    for one in command.params:
        one.hidden = False  # as --help-all
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
        rows = [(f"`{row['name']}`", row["meaning"], row["unit"]) for row in csv.DictReader(file)]
    return "# Metrics\n\n" + _table(("metric", "meaning", "unit"), rows)


def _sets() -> str:
    """The sets that pv-data can download, and those that pv-eval knows."""
    from pv_data.plugins import SOURCES
    from pv_data.sources.presets import published
    from pv_eval.sets.published import table_of_sets
    from pv_judge.pages.markdown import to_markdown

    kinds = SOURCES.entries()

    def options(name: str) -> str:
        read, table = (dict(signature(kinds[kind].read).parameters) for kind in (name, "table"))
        if read.keys() == table.keys():
            return "those of `table`"
        return ", ".join(f"`{key}: {one.default!r}`" for key, one in read.items() if key != "path")

    rows = [
        (
            f"`{one.name}`",
            f"[{kinds[one.name].meaning}]({one.page})",
            one.licence,
            ", ".join(f"`{file.path}`" for file in one.files),
            options(one.name),
        )
        for one in published().values()
    ]
    text = "# Published sets\n\n## For pv-data\n\n`pv-data sources --get KIND` downloads these files.\n\n"
    text += _table(("kind", "set", "licence", "files", "options and defaults"), rows)
    return f"{text}\n## For pv-eval\n\nThe table of `pv-eval sets`.\n\n{to_markdown([table_of_sets()])}"


def _rules() -> str:
    """What each rule of the veto finds, and its thresholds."""
    rows = [(f"`{rule.name}`", rule.meaning, "<br>".join(map(_threshold, rule.thresholds))) for rule in RULES]
    text = "# Fluency rules\n\n[What they are](../concepts/rules.md). Set `rules: {RULE: {THRESHOLD: NUMBER}}`.\n\n"
    return text + _table(("rule", "finds", "thresholds and defaults"), rows)


def _threshold(one: Parameter) -> str:
    bounds = f"{one.low:g} or more" if one.high == math.inf else f"{one.low:g} to {one.high:g}"
    return f"`{one.name}` {one.default:g} ({bounds}): {one.meaning}"


def _signs() -> str:
    """What each sign of the sentinel reads, and where it must not move."""
    rows = [
        (
            f"`{sign.name}`",
            sign.what.rstrip(","),
            ", ".join(f"`{name}`" for names in sign.metrics for name in names if "/" in name),
            "away from 0" if sign.from_zero else " or ".join(sign.sides),
            sign.family,
            f"{sign.advice}.",
        )
        for sign in DETECTORS.values()
    ]
    text = "# Signs of the sentinel\n\nWhat [the sentinel](../concepts/sentinel.md) reads.\n\n"
    return text + _table(("sign", "watches", "metric", "bad", "family", "look at first"), rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *((cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
