"""What the tests of the sources share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import places
import pytest

from pv_data.plugins import SOURCES
from pv_data.records import Aside, Problem, Proof

DATA = places.SHARED / "data"
FOLDERS = {
    "olympiadbench": "olympiadbench",
    "opc": "opc",
    "proofbench": "imobench",
    "processbench": "processbench",
    "prmbench": "prmbench",
    "gsm8k_solutions": "gsm8k_solutions",
    "dsmathv2": "dsmathv2",
}
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real inputs are not beside the repository")


def read(source: str, path: Path, **options: Any) -> list[Problem | Proof | Aside]:
    return list(SOURCES.named(source).read(path, **options))


def real(source: str, **options: Any) -> list[Problem | Proof | Aside]:
    return read(source, DATA / FOLDERS[source], **options)


def problems(rows: Iterable[Problem | Proof | Aside]) -> list[Problem]:
    return [row for row in rows if isinstance(row, Problem)]


def proofs(rows: Iterable[Problem | Proof | Aside]) -> list[Proof]:
    return [row for row in rows if isinstance(row, Proof)]


def reasons(rows: Iterable[Problem | Proof | Aside]) -> dict[str, int]:
    return dict(Counter(row.reason for row in rows if isinstance(row, Aside)))


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
