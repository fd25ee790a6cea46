"""Start-up of the quick start: what a weighting does to traces of the lab, and the stages that verl goes through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch

from pv_judge.pages.blocks import Block, Column, Heading, Paragraph, Table
from pv_lab import MODEL_DIR
from pv_lab.prepare import DIFFICULTY, TEST_ROWS, TEST_SEED
from pv_lab.samples import make_sample
from pv_lab.traces import TraceMix, sample_trace
from pv_rl.losses import response_weights
from pv_rl.plugins import VERL_MODES
from pv_runs.growing_file import Tail

__all__ = ["follow_stages", "weights_of_traces"]

STAGES = {
    b"Started a local Ray instance": "Ray runs; starting verl's trainer",
    b"dataloader initialized": "loading the model into the actor",
    b"model engine initialized": "starting the rollout server",
    b"ready to fit": f"validating the untrained verifier on {TEST_ROWS} held-out proofs",
}
"""What verl writes to its log when a stage begins, and the stage. A verl that writes something else shows fewer."""
RESPONSES = 4
EXAMPLE = 2
"""Seed with which both verdicts are among the traces."""


def follow_stages(log: Path) -> Iterator[str | None]:
    """Yield each stage as it begins, and None when there is nothing new for now. Endless: the caller stops."""
    file, left = Tail(log), dict(STAGES)
    while True:
        for line in file.look():
            for mark in [mark for mark in left if mark in line]:
                yield left.pop(mark)
        yield None


def weights_of_traces(mode: str) -> list[Block]:
    """A wrong proof, traces like those that the verifier has learned from, and the share of each in an update."""
    about = json.loads((MODEL_DIR / "training.json").read_text())
    proof = make_sample(seed=TEST_SEED, split="test", index=0, difficulty=DIFFICULTY, p_true=0.5)
    rng, mix = Random(EXAMPLE), TraceMix(**about["mix"])
    traces = sorted(
        (sample_trace(rng, proof.question, proof.steps, mix)[0] for _ in range(RESPONSES)), key=len
    )
    lengths = [len(trace.split()) + 1 for trace in traces]  # a token is a word, and the end mark is one
    earned = [trace.endswith(f"### {proof.label}") for trace in traces]
    advantages = [one - sum(earned) / RESPONSES for one in earned]
    shares: dict[str, list[float]] = {}
    for one in dict.fromkeys(("grpo", "dapo", "balanced", mode)):
        if one not in VERL_MODES:
            parts = response_weights(one, lengths, "a" * RESPONSES, advantages) * torch.tensor(lengths)
            shares[one] = (parts / parts.sum()).tolist()

    columns: list[Column[int]] = [
        Column("trace", lambda row: shortened(traces[row]), left=True),
        Column("reward", lambda row: str(int(earned[row]))),
        Column("tokens", lambda row: str(lengths[row])),
        *(Column(one, lambda row, one=one: f"{shares[one][row]:.0%}") for one in shares),
    ]
    rates = about["held_out_by_difficulty"][str(DIFFICULTY)]
    return [
        Heading("A proof, and how much each response of a prompt weighs in an update", level=1),
        Paragraph(proof.text),
        Table.of(columns, range(RESPONSES)),
        Paragraph(
            f"The proof is {'right' if proof.label else 'wrong'}. When the verifier was made, it accepted "
            f"{rates['right_proofs']:.0%} of {rates['traces'] // 2} right proofs and rejected only "
            f"{rates['wrong_proofs']:.0%} of {rates['traces'] // 2} wrong ones. verl now trains it with {mode}."
        ),
    ]


def shortened(text: str) -> str:
    """The text, or its two ends: the verdict is the last word."""
    return text if len(text) <= 40 else f"{text[:17]} ... {text[-18:]}"
