"""Texts that models and people wrote, in the shape of a verifier's trace: the text, then a verdict line.

Reads the folder of real inputs (`../shared/data` beside a checkout; its README says where each is from).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["DATA", "Trace", "real_traces"]

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
GSM8K_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A text that ends with a verdict."""

    name: str
    """`SOURCE:KEY`, the same in every run."""
    text: str
    writer: str
    """`judge` (a model's judgment of a solution), `model` (a model's solution or proof) or `person`."""

    @property
    def source(self) -> str:
        return self.name.partition(":")[0]


def real_traces(data: Path = DATA) -> list[Trace]:
    """Every text, in a fixed order; a text that occurs twice is taken once."""
    found: dict[str, Trace] = {}
    for name, writer, body, verdict in _texts(data):
        text = f"{body.rstrip()}\n\n### {verdict}"
        if len(body.split()) >= 8:
            found.setdefault(text, Trace(name=name, text=text, writer=writer))
    return list(found.values())


def _texts(data: Path) -> Iterator[tuple[str, str, str, bool]]:
    for row in _rows(data / "mrgsm8k" / "judge_traces.jsonl"):
        yield f"mrgsm8k:{row['judge']}:{row['uuid']}", "judge", row["judge_response"], False
    for row in _rows(data / "opc" / "opc_dev.jsonl"):
        key = f"{row['problem_id']}:{row['model_id']}"
        right = row["label"] == "correct"
        yield f"opc:{key}", "model", row["proof"], right
        if row["llm_issues"]:
            lines = [
                f"{one['category']}, {one['location']}: {one['description']}" for one in row["llm_issues"]
            ]
            yield f"opc_issues:{key}", "judge", "\n".join(lines), right
    for row in _rows(data / "dsmathv2" / "dsmathv2_outputs.jsonl"):
        right = row["human_rating"] == row["max_rating"]
        yield f"dsmathv2:{row['set']}:{row['problem_idx']}", "model", row["proof"], right
    for path in sorted((data / "processbench").glob("*.jsonl")):
        for row in _rows(path):
            yield f"processbench:{row['id']}", "model", "\n\n".join(row["steps"]), row["label"] == -1
    for row in _rows(data / "prmbench" / "prm800k_test_p1_classified.jsonl"):
        for kind in ("original", "modified"):
            key = f"prmbench:{row['idx']}:{row['classification']}:{kind}"
            yield key, "model", "\n".join(row[f"{kind}_process"]), kind == "original"
    for path in sorted((data / "olympiadbench").glob("*.jsonl")):
        for row in _rows(path):
            for number, solution in enumerate(row["solutions"]):
                yield f"olympiadbench:{row['id']}:{number}", "person", solution, True
    for number, row in enumerate(_rows(data / "gsm8k_solutions" / "example_model_solutions.jsonl")):
        for model in GSM8K_MODELS:
            yield f"gsm8k:{number}:{model}", "model", row[model]["solution"], row[model]["is_correct"]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
