"""What `pv-rl rejudge` does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from rich.progress import Progress
from yaml import YAMLError

from pv_rl.errors import ConfigError, DataError
from pv_rl.judge.config import JudgeConfig, read_config
from pv_rl.judge.fluency import FluencyPrompt
from pv_rl.judge.ledger import read_ledger
from pv_rl.judge.rejudge import THRESHOLD, Judgment, OldRow, compare, old_rows
from pv_rl.judge.rejudge_asking import Plan, ask, plan, without_steps
from pv_rl.judge.rejudge_marks import add_marks
from pv_rl.judge.rejudge_output import print_report, write_report
from pv_rl.weights.writing import check_target

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_judge", "rejudge"]


def rejudge(
    *,
    ledger: Path,
    config: Path | None = None,
    prompt: Path | None = None,
    threshold: float | None = None,
    sample: int | None = None,
    seed: int = 0,
    marks: Path | None = None,
    out: Path | None = None,
    yes: bool = False,
) -> None:
    """Replay a ledger and print what comes of it; nothing is sent without `yes`.

    Args:
        ledger: its folder, or one Parquet file of it.
        config: YAML file of the judge to ask; None: nobody is asked.
        prompt: file of the prompt; None: ours.
        threshold: the confidence from which a judge's finding vetoes; None: 0.5 for a new judge.
        sample: so many rows of the ledger, drawn by `seed`; None: all.
        marks: .csv or .jsonl file of human marks.
        out: .json or .parquet file to be written.
        yes: send what the plan says.

    Raises:
        PvRlError: something given is not what it should be.
        OSError: a file cannot be read or written.
    """
    _check(config, prompt, threshold, sample, marks, out)
    table = read_ledger(ledger)
    rows = old_rows(table)
    console, errors = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True)
    lost = 0
    if marks is not None:
        rows, lost = add_marks(rows, marks)
    if sample is not None and sample < len(rows):
        chosen = sorted(random.Random(seed).sample(range(len(rows)), sample))
        rows, table = [rows[number] for number in chosen], table.take(chosen)
    about: dict[str, Any] = {"ledger": str(ledger), "threshold": threshold}
    judgments: Mapping[str, Judgment] = {}
    say = f"{ledger}: {len(rows)} of {read_rows(table, rows)} rows"
    console.print(say, markup=False)
    if lost:
        console.print(f"{lost} marks are of no row of the ledger.")


def read_judge(path: Path) -> JudgeConfig:
    raise NotImplementedError
