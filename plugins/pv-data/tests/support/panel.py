"""A panel of judges for the tests: it speaks the real protocol, and finds a proof right or wrong by a mark in it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from judge_server import JudgeServer, Script

from pv_data.records import Problem, Proof
from pv_data.run.config import RunConfig, read_run
from pv_data.table import write_part

__all__ = ["JudgeServer", "Script", "answer", "by_mark", "make_tables", "settings"]


def answer(right: bool) -> str:
    """A judge's answer."""
    keys = [*(f"condition{n}_satisfied" for n in range(1, 5)), "proof_correct"]
    return json.dumps(dict.fromkeys(keys, right))


def by_mark(prompt: str, model: str) -> str:
    """Right if the proof says SOUND; a proof that says TORN divides the judges, each always of the same opinion. To one
    that says MUTE there is no answer that anybody could use."""
    if "MUTE" in prompt:
        return "I cannot say."
    if "TORN" in prompt:
        return answer(hashlib.sha256((model + prompt).encode()).digest()[0] % 2 == 0)
    return answer("SOUND" in prompt)


def make_tables(run: Path, proofs: int, *, words: str = "SOUND") -> None:
    """Tables as `collect` writes them: ten proofs a problem, every other one wrong."""
    problems = [
        Problem(source="Test", native_id=str(n), text=f"Prove that {n} + 0 = {n}.")
        for n in range(-(-proofs // 10))
    ]
    rows = [
        Proof(
            problem_id=problems[n // 10].id,
            source="Test",
            method="proof",
            model="m",
            text=f"Proof number {n}: {words if n % 2 == 0 else 'a guess'}.",
            known=n % 2 == 0,
            known_by="mark",
        )
        for n in range(proofs)
    ]
    write_part(run / "problems" / "00-00000.parquet", Problem, problems, group=64)
    write_part(run / "proofs" / "00-00000.parquet", Proof, rows, group=64)


def settings(run: Path, url: str, *, concurrency: int = 16, attempts: int = 3, **more: Any) -> RunConfig:
    """A run with a panel of three votes of one model and one of another."""
    model = {
        "sampling": {"temperature": 0.6, "max_tokens": 100},
        "retries": {"attempts": attempts, "backoff_s": 0.01, "max_backoff_s": 0.05},
        "timeouts": {"connect_s": 60, "first_byte_s": 60, "total_s": 60},
        "prices": {"big": {"input": 1.0, "output": 2.0}, "small": {"input": 0.1, "output": 0.2}},
        "limits": {"concurrency": concurrency},
        "breaker": {"failures": 50, "probe_after_s": 0.1},
    }
    models = {name: model | {"endpoints": [{"url": url, "model": name}]} for name in ("big", "small")}
    return read_run(
        {
            "run_dir": str(run),
            "sources": [{"kind": "table", "path": "none.jsonl"}],
            "models": models,
            "panel": [{"model": "big", "votes": 3}, {"model": "small"}],
            **more,
        }
    )
