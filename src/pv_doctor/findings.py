"""Findings on the terminal, one line each."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from pv_rl.hookspecs import Finding

__all__ = ["print_findings"]

MARKS = {"ok": "[green]ok   [/]", "note": "[yellow]note [/]", "wrong": "[red]wrong[/]"}


def print_findings(findings: Mapping[str, Finding], console: Console) -> bool:
    """Print them by the name of their check. Returns whether no check failed."""
    for name, finding in findings.items():
        remedy = f" [bold]Remedy:[/] {escape(finding.remedy)}" if finding.remedy else ""
        line = " ".join(finding.text.split())  # one line and no control character, whatever an error holds
        text = escape("".join(c for c in line if c.isprintable()))
        console.print(f"{MARKS[finding.state]} {name:9}{text}{remedy}", highlight=False)
    states = [finding.state for finding in findings.values()]
    wrong, notes = states.count("wrong"), "; see the notes above" * ("note" in states)
    console.print(
        f"{wrong} of {len(findings)} checks failed." if wrong else f"This environment will work{notes}."
    )
    return not wrong
