"""Give the lab's reference loop the responses that a trainer trained on, and hold the trainer's numbers to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from trainer import MAX_RESPONSE, read_metrics

from pv_lab.reference_loop import Batch, ReferenceLoop, Run, Settings
from pv_lab.tokenizer import ASSISTANT, EOS, PAD, USER, VOCABULARY, encode

TOLERANCE = 2e-4
"""Relative, of gradient norm and losses; both are float32."""


def check_reference_loop(
    folder: Path,
    spec: str,
    *,
    steps: int = 2,
    names: tuple[str, ...] = ("grad_norm", "pg_loss", "kl_loss"),
    tolerance: float = TOLERANCE,
) -> None:
    """On a run's rollouts, one step after another, the loop has the run's gradient norm, policy loss and KL term."""
    loop = ReferenceLoop([Run(mode=spec)], Settings())
    logged = read_metrics(folder)
    for step in range(1, steps + 1):
        measured = loop.update(_batch(folder / "rollouts" / f"{step}.jsonl"))
        ours = {name: measured[name].item() for name in names}
        theirs = {name: logged[step][f"actor/{name}"] for name in names}
        assert ours == pytest.approx(theirs, rel=tolerance, abs=1e-7)
    assert steps == 1 or measured["kl_loss"] > 0  # the second step starts away from the reference


def _batch(rollouts: Path) -> Batch:
    rows = [json.loads(line) for line in rollouts.read_text().splitlines()]
    prompts = [encode(f"{USER} {row['input']} {ASSISTANT}") for row in rows]
    responses = [encode(row["output"]) for row in rows]
    responses = [ids + [VOCABULARY[EOS]] * (len(ids) < MAX_RESPONSE) for ids in responses]
    names = list(dict.fromkeys(row["input"] for row in rows))
    return Batch(
        prompts=_padded(prompts, left=True),
        responses=_padded(responses, left=False),
        scores=torch.tensor([[row["score"] for row in rows]]),
        groups=[names.index(row["input"]) for row in rows],
    )


def _padded(rows: list[list[int]], *, left: bool) -> torch.Tensor:
    longest = max(map(len, rows))
    fill = [[VOCABULARY[PAD]] * (longest - len(row)) for row in rows]
    return torch.tensor([[f + row if left else row + f for f, row in zip(fill, rows, strict=True)]])
