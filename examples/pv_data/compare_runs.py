"""Two runs of the same config, side by side: which answers, generated proofs, judgments and labels are the same.

python examples/pv_data/compare_runs.py RUN RUN

A model on a GPU adds in an order that hangs on what else is in the batch, so that some of its texts differ after some
words though seed and question are the same: the keys of the answers are to be equal, and most of their texts.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

from pv_data.records import Aside, Judgment, Label, Proof
from pv_data.table import read_rows


def tables(run: Path) -> dict[str, dict[Any, Any]]:
    """By name, and in each by what identifies a row: what is to be the same."""
    answers: dict[str, Any] = {}
    if (run / "answers.sqlite").exists():  # models may have caches of their own
        with sqlite3.connect(f"file:{run / 'answers.sqlite'}?mode=ro", uri=True) as db:
            answers = dict(db.execute("SELECT key, text FROM answers"))
    judgments = read_rows(run / "judgments", Judgment)
    return {
        "answers": answers,
        "generated": {
            (one.problem_id, one.parent_id, one.method, one.model, one.origin.sample): one.text
            for one in read_rows(run / "generated", Proof)
        },
        "judgments": {(one.proof_id, one.judge, one.origin.sample): one.verdict for one in judgments},
        "labels": {one.proof_id: (one.value, one.votes) for one in read_rows(run / "labels", Label)},
        "aside": {(one.stage, one.row): one.reason for one in read_rows(run / "aside", Aside)},
    }


def main(first: Path, second: Path) -> None:
    """Print a line a table."""
    one, other = tables(first), tables(second)
    sys.stdout.write(f"{'':10} {'first':>7} {'second':>7} {'in both':>8} {'the same':>9}\n")
    for name in one:
        both = one[name].keys() & other[name].keys()
        same = sum(one[name][key] == other[name][key] for key in both)
        sys.stdout.write(f"{name:10} {len(one[name]):7} {len(other[name]):7} {len(both):8} {same:9}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
