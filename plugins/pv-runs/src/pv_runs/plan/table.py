"""The plan on a terminal, or as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pv_runs.plan.assumed import Assumed
from pv_runs.plan.planning import Plan
from pv_runs.plan.sentences import gpus, judge, memory_heading, run, step, verdict
from pv_runs.plan.step_time import FACTOR, Duration

__all__ = ["print_plan"]

STYLES = {"does not run": "bold red", "does not fit": "bold red", "warning": "yellow", "note": ""}


def print_plan(plan: Plan, console: Console) -> None:
    """Print all of it: the verdict, what it rests on, what was found, what was assumed."""
    _say(console, verdict(plan), style="bold")
    _say(
        console,
        "An estimate from the config and from what is assumed below, not a measurement. To be off by a factor of "
        f"{FACTOR:g} is normal.",
    )
    _head(console, "GPUs")
    _lines(console, gpus(plan))
    _print_memory(plan, console)
    _head(console, "Step")
    _lines(console, step(plan))
    _print_time(plan, console)
    _lines(console, run(plan))
    _head(console, "Judge")
    _lines(console, judge(plan))
    _print_findings(plan, console)
    _print_assumed(plan.setup.assumed, console)


def _print_memory(plan: Plan, console: Console) -> None:
    """A block a phase, then the host, then what the KV cache holds."""
    _head(console, "Memory, GiB")
    table = _table("", "", "")
    for phase in plan.memory.phases:
        table.add_row(*map(Text, memory_heading(phase)), style="red" if phase.over_gib else "bold")
        for part in sorted(phase.parts, key=lambda part: -part.gib):
            table.add_row(f"  {part.name}", f"{part.gib:.1f}", Text(part.how))
    known = plan.memory.host_available_gib
    room = "of the host; how much it has is not known" if known is None else f"of the host's {known:g}"
    table.add_row(Text("a training node"), Text(f"{plan.memory.host_gib:.0f}"), Text(room), style="bold")
    for part in sorted(plan.memory.host, key=lambda part: -part.gib):
        table.add_row(f"  {part.name}", f"{part.gib:.1f}", Text(part.how))
    _print(console, table)
    cache = plan.memory.kv_cache
    longest = plan.setup.batch.longest
    _say(
        console,
        f"KV cache: {cache.gib:.1f} GiB a GPU at {cache.token_bytes:,.0f} bytes a token hold {cache.tokens:,} tokens: "
        f"{cache.mean_rows:,} rows of mean length, or {cache.longest_rows:,} of {longest:,} tokens",
    )


def _print_time(plan: Plan, console: Console) -> None:
    time = plan.time
    table = _table("", "s", "")
    blocks: tuple[tuple[str, Iterable[Duration]], ...] = (
        ("generation", time.generation),
        ("training", time.training),
        ("", (time.sync, *([time.judge] if time.judge else []), time.other)),
    )
    for name, durations in blocks:
        if name:
            total = sum(duration.seconds for duration in durations)
            table.add_row(name, f"{total:.1f}", "", style="bold")
        for duration in durations:
            table.add_row(
                f"  {duration.name}" if name else duration.name, f"{duration.seconds:.1f}", Text(duration.how)
            )
    low, high = time.between
    table.add_row(
        "a step", f"{time.seconds:.0f}", Text(f"{time.how}; from {low:.0f} to {high:.0f}"), style="bold"
    )
    _print(console, table)


def _print_findings(plan: Plan, console: Console) -> None:
    _head(console, "Findings")
    if not plan.findings:
        _say(console, "none")
    for finding in plan.findings:
        _say(console, f"{finding.severity}: {finding.text}", style=STYLES[finding.severity])
        if finding.overrides and finding.severity != "does not fit":  # those come below, once
            _say(console, f"    {' '.join(finding.overrides)}")
    remedy = plan.remedy
    if remedy is None:
        return
    if remedy.fits:
        taken = f", on {remedy.gpus} GPUs" if remedy.gpus != plan.layout.total_gpus else ""
        _say(console, f"It fits{taken} with: {' '.join(remedy.overrides)}", style="bold")
        full = f"The fullest GPU then has {100 * remedy.fullest:.0f}% of its memory taken"
        _say(console, f"{full}, and a training node {remedy.host_gib:.0f} GiB of its host's.")
    else:
        tried = f" The best: {' '.join(remedy.overrides)}" if remedy.overrides else ""
        text = f"No change that the plan knows makes it fit; {remedy.over_gib:.0f} GiB stay missing.{tried}"
        _say(console, text, style="bold")


def _print_assumed(assumed: Assumed, console: Console) -> None:
    _head(console, "Assumed (change one with ++plan.NAME=VALUE; docs/plan.md says where it comes from)")
    table = _table("", "", "")
    for field in fields(assumed):  # pyright: ignore[reportArgumentType]
        value = getattr(assumed, field.name)
        shown = "not given" if value is None else f"{value:g}"
        table.add_row(field.name, shown, Text(_summary(field.name)))
    _print(console, table)


def _summary(name: str) -> str:
    """The first sentence of a field's docstring."""
    described = Assumed.__pydantic_fields__[name].description or ""  # pyright: ignore[reportAttributeAccessIssue]
    text = " ".join(described.split())
    return text.split(". ")[0].rstrip(".")


def _head(console: Console, text: str) -> None:
    console.print()
    _say(console, text, style="bold underline")


def _lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        _say(console, line)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number == 1 else "left", no_wrap=number < 2)
    return table


def _print(console: Console, table: Table) -> None:
    console.print(table)
