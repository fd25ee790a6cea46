"""prime-rl adapter: adds a weighting of pv-rl to the batches of the orchestrator; a launcher starts its commands.

    python -m pv_trainers.prime_rl balanced:0.6 rl @ rl.toml
    python -m pv_trainers.prime_rl balanced:0.6 orchestrator @ orchestrator.toml

No function that a config can name sees a whole batch, so the launcher wraps `TrainSink`. Tested at 559b447.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from pv_rl.errors import LossModeError
from pv_rl.losses import resolve_mode, scale_advantages
from pv_trainers.launch import starting

__all__ = ["install"]


def install(mode: str) -> None:
    """Scale the advantages of each batch that `TrainSink` cuts. Call it once, with a spec of pv-rl."""
    sink: Any = importlib.import_module("prime_rl.orchestrator.train_sink")
    mode, cut = resolve_mode(mode).spec, getattr(sink.TrainSink, "process_batch", install)
    if not {"pending_batch", "episode_by_trace", "filter_zero_advantages"} <= set(cut.__code__.co_names):
        raise LossModeError("TrainSink.process_batch is not that of commit 559b447. Install that commit.")

    def process_batch(self: Any) -> Any:
        longest, pending = self.config.seq_len, self.pending_batch
        groups = {trace: sink.episode_group_id(self.episode_by_trace[trace]) for trace in pending}
        rows = {trace: [(s, _members(s, longest)) for s in samples] for trace, samples in pending.items()}
        batch = cut(self)
        taken = [trace for trace in rows if trace not in self.pending_batch]
        tokens = sum(sum(_members(sample, longest)) for sample in batch.samples)  # prime-rl's own divisor
        if tokens:
            _scale(mode, [rows[trace] for trace in taken], [groups[trace] for trace in taken], tokens)
        return batch

    sink.TrainSink.process_batch = process_batch


def _members(sample: Any, longest: int) -> list[bool]:
    """Whether the trainer counts each token; it cuts a sample at seq_len."""
    if len(sample.mask) > longest and sample.mm_kwargs is not None:
        raise LossModeError("A sample with images is longer than seq_len. Raise seq_len, so that it fits.")
    weights, advantages = sample.rl_weights or [1.0] * len(sample.mask), sample.advantages or sample.mask
    return [bool(m and w) for m, w, _ in zip(sample.mask, weights, advantages, strict=True)][:longest]


def _scale(mode: str, rows: list[Any], groups: list[str], tokens: int) -> None:
    values = [[a for s, m in row for a in (s.advantages or [0.0] * len(m))[: len(m)]] for row in rows]
    counts = [[float(member) for _, members in row for member in members] for row in rows]
    parts = [[torch.tensor(row, dtype=torch.float64) for row in part] for part in (values, counts)]
    advantages, mask = (pad_sequence(part, batch_first=True) for part in parts)
    scaled = scale_advantages(mode, advantages, mask, groups, tokens).tolist()
    for row, rest in zip(rows, scaled, strict=True):
        for sample, members in row:
            if sample.advantages is not None:
                sample.advantages = rest[: len(members)] + sample.advantages[len(members) :]
            rest = rest[len(members) :]


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in ("rl", "orchestrator"):
        sys.exit("usage: python -m pv_trainers.prime_rl SPEC rl|orchestrator ARGUMENTS")
    with starting("prime_rl", install="Use the Python of a clone of github.com/PrimeIntellect-ai/prime-rl."):
        spec, sys.argv = resolve_mode(sys.argv[1]).spec, sys.argv[2:]
        command: Any = importlib.import_module(f"prime_rl.entrypoints.{sys.argv[0]}")
        if sys.argv[0] == "orchestrator":
            install(spec)
    if sys.argv[0] == "rl":
        start, again = command.Popen, [sys.executable, "-m", "pv_trainers.prime_rl", spec]
        command.Popen = lambda args, **others: start(again * (args[0] == "orchestrator") + args, **others)
        command.rl_slurm = lambda _: sys.exit("[slurm] is not supported. Start the orchestrator yourself.")
    command.main()
