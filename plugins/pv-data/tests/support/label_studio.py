"""Exports in the form of Label Studio 1.23 (`exportType=JSON`), made from a file of tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def annotation(user: int, verdict: str | None, minute: int = 0, **changed: Any) -> dict[str, Any]:
    """One annotation; texts by tag in `said`, and any field of it otherwise."""
    said = changed.pop("said", {})
    choices = {"verdict": verdict, "fault": said.get("fault")}
    result = [_result(name, "choices", "choices", text) for name, text in choices.items() if text]
    result += [_result(name, "textarea", "text", said[name]) for name in ("step", "comment") if name in said]
    time = f"2026-11-29T10:{minute:02}:00.{user:06}Z"
    return {
        "id": 100 * user + minute,
        "completed_by": user,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": time,
        "updated_at": time,
        "draft_created_at": None,
        "lead_time": 90.0,
        "prediction": {},
        "result_count": len(result),
        "unique_id": f"{user}-{minute}",
        "import_id": None,
        "last_action": None,
        "bulk_created": False,
        "task": 1,
        "project": 1,
        "updated_by": user,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
    } | changed


def _result(name: str, type_: str, key: str, text: str) -> dict[str, Any]:
    return {
        "id": "a1b2c3d4e5",
        "from_name": name,
        "to_name": "proof",
        "type": type_,
        "origin": "manual",
        "value": {key: [text]},
    }


def tasks_of(file: Path) -> list[dict[str, Any]]:
    """What each task of an import shows, in its order."""
    return [task["data"] for task in json.loads(file.read_text(encoding="utf-8"))]


def export(tasks: Path, file: Path, said: Mapping[str, list[dict[str, Any]]]) -> Path:
    """Write the export of a project with these annotations, by proof id; tasks that nobody annotated are left out."""
    rows = [
        {
            "id": number,
            "annotations": said[data["proof_id"]],
            "drafts": [],
            "predictions": [],
            "data": data,
            "meta": {},
            "created_at": "2026-11-29T09:00:00.000000Z",
            "updated_at": "2026-11-29T09:00:00.000000Z",
            "inner_id": number,
            "total_annotations": len(said[data["proof_id"]]),
            "cancelled_annotations": 0,
            "total_predictions": 0,
            "project": 1,
            "updated_by": 1,
        }
        for number, data in enumerate(tasks_of(tasks), start=1)
        if data["proof_id"] in said
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file
