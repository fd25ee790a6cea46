"""Board files: index.html, README.md, board.json and board.csv. The same votes give the same bytes.

They hold names, numbers and the ends of folders' paths, and neither questions, proofs, traces nor addresses.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pv_data.export.distribution import no_formula
from pv_eval.board.entries import Entry, read_entries
from pv_eval.board.measure import Board, Cell, Column, measure
from pv_eval.board.page import blocks
from pv_eval.intervals import Estimate, Intervals
from pv_judge.files import write_together
from pv_judge.pages.html import to_html
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import plain
from pv_judge.pages.writing import check_folder, plain_values, to_json

__all__ = ["FORMAT", "document", "make_board", "table", "write_board"]

FORMAT = 1


def make_board(folders: Sequence[Path], how: Intervals | None = None, *, against: str = "") -> Board:
    """Read and measure runs; see `read_entries` and `measure`."""
    how = how or Intervals()
    entries, refused = read_entries(folders, how)
    return measure(entries, how, against=against, refused=refused)


def write_board(board: Board, out: Path) -> list[Path]:
    """Write the files, all or none; `out` is created if need be, its parent has to be there.

    Raises:
        DataError: `out` is not a folder, or its parent is missing.
        OSError: a file cannot be written.
    """
    check_folder(out)
    known = list(blocks(board))
    files = {
        "index.html": to_html(known, sortable=True),
        "README.md": to_markdown(known),
        "board.json": to_json(document(board)),
        "board.csv": table(board),
    }
    out.mkdir(exist_ok=True)
    write_together({out / name: text.encode("utf-8", "replace") for name, text in files.items()})
    return [out / name for name in files]


def document(board: Board) -> dict[str, Any]:
    """A tree of plain values; null where a number is not defined.

    Keys: `format`, `intervals`, `against`, `correction`; `sets`, each with its cells, the best first; `means` by
    verifier; `refused`.
    """
    return {
        "format": FORMAT,
        "intervals": board.how,
        "against": board.against or "the best of each set",
        "correction": "Holm, within a set",
        "verifiers": board.verifiers,
        "sets": [
            {
                **plain_values(replace(column.on, set_name=plain(column.on.set_name))),
                "decides": column.decides,
                "reference": column.reference,
                "cells": [
                    {
                        "verifier": cell.entry.verifier,
                        "numbers": cell.numbers,
                        "extra": cell.entry.extra,
                        "versus": cell.versus and replace(cell.versus, reason=plain(cell.versus.reason, 300)),
                        **_facts(cell.entry),
                    }
                    for cell in column.cells
                ],
            }
            for column in board.columns
        ],
        "means": board.means,
        "refused": board.refused,
    }


def _facts(entry: Entry) -> dict[str, Any]:
    counts = entry.counts
    return {
        "pairs": len(counts.pairs),
        "questions": len(counts.questions),
        "votes": len(counts.votes),
        "fewest_votes": int(counts.samples.min()),
        "most_votes": int(counts.samples.max()),
        "prompt_tokens": entry.cost.prompt_tokens,
        "answer_tokens": entry.cost.answer_tokens,
        "usd": entry.cost.usd,
        "date": entry.date,
        "pv_eval": entry.version,
        "commit": entry.commit,
        "revision": entry.revision,
        "prompt": entry.prompt,
        "temperature": entry.info.temperature,
        "seed": entry.info.seed,
        "verdict_format": plain(entry.info.verdict_format),
        "folder": entry.folder,
    }


def table(board: Board) -> str:
    """CSV with a line a cell; empty where a number is not defined."""
    titles = list(
        dict.fromkeys(title for c in board.columns for cell in c.cells for title in cell.entry.extra)
    )
    lines = [_line(column, cell, titles) for column in board.columns for cell in column.cells]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _field(value) for name, value in line.items()} for line in lines)
    return text.getvalue()


def _line(column: Column, cell: Cell, titles: Sequence[str]) -> dict[str, Any]:
    versus = cell.versus
    nothing = Estimate(value=math.nan)
    numbers = {**cell.numbers, "difference": versus.difference if versus else nothing}
    numbers |= {title: cell.entry.extra.get(title, nothing) for title in titles}
    return {
        "set": column.on.name,
        "fingerprint": column.on.fingerprint,
        "verifier": cell.entry.verifier,
        **{
            name + end: value
            for name, one in numbers.items()
            for end, value in (("", one.value), ("_low", one.low), ("_high", one.high))
        },
        "reference": column.reference,
        "p": versus.p if versus else math.nan,
        "p_holm": versus.holm if versus else math.nan,
        **_facts(cell.entry),
    }


def _field(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return no_formula(value) if isinstance(value, str) else value
