"""A set of proofs, and a verifier that judges them by a mark."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from pv_eval.cli import app


def model(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def by_mark(prompt: str, _: str) -> str:
    """Finds every proof right that says SOUND, and one wrong one too."""
    return f"I read it.\n### {'SOUND' in prompt or 'guess 3' in prompt}"


def small_set(folder: Path, number: int = 8) -> Path:
    path = folder / "set.jsonl"
    rows = [
        {
            "id": f"p{n}",
            "question_id": f"q{n // 4}",
            "problem": f"Prove {n // 4}.",
            "proof": f"A SOUND proof, {n}." if n % 2 == 0 else f"A guess {n}.",
            "label": n % 2 == 0,
        }
        for n in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(one) for one in arguments])
