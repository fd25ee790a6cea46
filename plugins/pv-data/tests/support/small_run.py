"""A small run of the command `pv-data run`, with a source of its own, and a server that answers for its models."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from panel import JudgeServer, answer
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.records import Aside, AuditMark, Judgment, Label, Problem, Proof, Qpc
from pv_data.table import read_rows

__all__ = ["Run", "by_text"]

CONFIG = """
run_dir: {run}
sources:
  - {{kind: table, path: {rows}, name: Mine, options: {{columns: {{problem: question, proof: solution}}}}}}
models:
  judge:
    endpoints: {endpoints}
    retries: {{attempts: 2, backoff_s: 0.01, max_backoff_s: 0.01}}
    breaker: {{failures: 8, probe_after_s: 0.2}}
    limits: {{concurrency: 4}}
panel: [{{model: judge, votes: 2}}]
split: {{test: 0.3}}
duplicates: {{threshold: null}}
"""
FOLDERS = {
    "problems": Problem,
    "proofs": Proof,
    "generated": Proof,
    "judgments": Judgment,
    "labels": Label,
    "marks": AuditMark,
    "aside": Aside,
    "export/qpc": Qpc,
}


def by_text(prompt: str, _: str) -> str:
    """A verdict on each proof, and a proof for each problem: the same answer to the same question."""
    if "condition1_satisfied" in prompt:
        return answer("SOUND" in prompt)
    told = hashlib.sha256(prompt.encode()).hexdigest()
    return f"SOUND {told}: we go by induction over the number of summands, and all is well."


class Run:
    """The config, and what the run has made."""

    def __init__(
        self, folder: Path, *servers: JudgeServer, problems: int = 6, each: int = 4, more: str = ""
    ) -> None:
        """`each`: proofs of a problem, of which every second is SOUND."""
        self.folder, self.config, self.rows = folder / "run", folder / "run.yaml", folder / "rows.jsonl"
        lines = [
            {
                "question": f"Prove that the sum of the first {n // each + 3} odd numbers is a square.",
                "solution": f"{'SOUND' if n % 2 else 'A hope'}: attempt {n} goes by induction.",
            }
            for n in range(problems * each)
        ]
        self.rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
        endpoints = json.dumps([{"url": one.url, "model": "judge"} for one in servers])
        text = CONFIG.format(run=self.folder, rows=self.rows, endpoints=endpoints)
        self.config.write_text(text + more)

    def copy(self, folder: Path) -> Run:
        """The same run, in a copy of its folder."""
        made = copy(self)
        made.folder = Path(shutil.copytree(self.folder, folder))
        return made

    def command(self, *more: str) -> tuple[int, str]:
        """Exit code and output, on one line."""
        done = CliRunner().invoke(app, ["run", str(self.config), f"run_dir={self.folder}", *more])
        return done.exit_code, " ".join(done.output.split())

    def tables(self, folder: Path | None = None) -> dict[str, list[Any]]:
        """All rows, in order of their ids, without the times of their answers."""
        return {
            name: sorted(map(_timeless, read_rows((folder or self.folder) / name, kind)), key=repr)
            for name, kind in FOLDERS.items()
        }

    @property
    def reasons(self) -> Sequence[str]:
        """Of the rejected rows."""
        return sorted(row.reason for row in read_rows(self.folder / "aside", Aside))


def _timeless(row: Any) -> Any:
    return replace(row, origin=replace(row.origin, time="")) if hasattr(row, "origin") else row
