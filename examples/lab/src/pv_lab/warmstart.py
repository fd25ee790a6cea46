"""Supervised warm start: `python -m pv_lab.warmstart --out DIR --seed 0 --device cuda`.

The first half is study: exact step-by-step checks, with the loss on the whole text, so that the model
learns to calculate. The second half teaches the habits that RL is to change, a `traces.TraceMix` of hasty
verdicts and unreliable checks, with the loss on the trace alone. Without the study a model learns to copy
the value that the proof claims, and has little to gain from looking.

With `--begin` it goes on from a verifier that has studied, to teach it other habits: starts for experiments,
such as one that loops now and then (`--mix '{"accept": 0.32, "loop": 0.15}'`).

Each step draws fresh questions of the train split. What comes out depends on the seed, the steps, the mix
and the device; the number of workers changes nothing, since a batch is decided by (seed, step) alone.
"""

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from pv_judge.files import write_atomically
from pv_lab.evaluate import evaluate, held_out
from pv_lab.model import make_model, save_model
from pv_lab.samples import make_sample
from pv_lab.tokenizer import ASSISTANT, EOS, PAD, USER, VOCABULARY, encode
from pv_lab.traces import TraceMix, sample_trace
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import torch

__all__ = ["DIFFICULTIES", "make_batch", "train"]

STUDY = TraceMix(
    bare=0, accept=0, reject=0, long=0.9, verbose=0.1, miss=0, false_alarm=0, second_look=1, relook=0.3
)
"""Exact checks, some of them with a needless second look."""

DIFFICULTIES = {1: 0.2, 2: 0.6, 3: 0.2}
"""Share of each difficulty in the warm start; the committed weights know no other."""

IGNORED = -100

Rows = list[list[int]]


def make_batch(step: int, *, seed: int, size: int, mix: TraceMix, study: int) -> tuple[Rows, Rows]:
    """`size` right-padded rows of ids, and their labels. Steps before `study` are study."""
    rng = Random(f"pv-rl lab warm start {seed} {step}")
    rows, unlearned = [], []
    for i in range(size):
        difficulty = rng.choices(list(DIFFICULTIES), list(DIFFICULTIES.values()))[0]
        sample = make_sample(
            seed=seed, split="train", index=step * size + i, difficulty=difficulty, p_true=0.5
        )
        trace, _ = sample_trace(rng, sample.question, sample.steps, STUDY if step < study else mix)
        prompt = encode(f"{USER} {sample.text} {ASSISTANT}")
        rows.append(prompt + encode(f"{trace} {EOS}"))
        unlearned.append(1 if step < study else len(prompt))
    longest = max(map(len, rows))
    ids = [row + [VOCABULARY[PAD]] * (longest - len(row)) for row in rows]
    labels = [
        [IGNORED] * n + row[n:] + [IGNORED] * (longest - len(row))
        for row, n in zip(rows, unlearned, strict=True)
    ]
    return ids, labels


def _batches(steps: int, *, workers: int, **options) -> Iterator[tuple["torch.Tensor", "torch.Tensor"]]:
    import torch

    make = partial(make_batch, **options)
    if workers == 0:
        yield from ((torch.tensor(ids), torch.tensor(labels)) for ids, labels in map(make, range(steps)))
        return
    with get_context("spawn").Pool(workers) as pool:
        for ids, labels in pool.imap(make, range(steps), chunksize=4):
            yield torch.tensor(ids), torch.tensor(labels)


def train(
    *,
    seed: int,
    steps: int,
    size: int,
    lr: float,
    mix: TraceMix,
    device: str,
    workers: int,
    begin: Path | None = None,
) -> tuple["torch.nn.Module", float]:
    """Train a new model, or one in the folder `begin`, which needs no study; returns it and the mean loss of the last
    hundred steps.

    AdamW (0.9, 0.98), warm-up of 100 steps, cosine to 5% of `lr`, mean cross-entropy over tokens.
    """
    import torch
    from torch.nn.functional import cross_entropy

    model = (make_model(seed) if begin is None else _load(begin)).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
    losses: list[torch.Tensor] = []
    study = steps // 2 if begin is None else 0
    batches = _batches(steps, workers=workers, seed=seed, size=size, mix=mix, study=study)
    for step, (ids, labels) in enumerate(batches):
        cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / 100) * (0.05 + 0.95 * cosine)
        logits = model(input_ids=ids.to(device)).logits[:, :-1]
        targets = labels[:, 1:].to(device)
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if step % 250 == 0 or step == steps - 1:
            typer.echo(f"step {step} loss {loss.item():.4f}")
    return model.eval(), torch.stack(losses[-100:]).mean().item()


def _load(folder: Path) -> "torch.nn.Module":
    from transformers import Qwen3ForCausalLM

    if not (folder / "model.safetensors").is_file():
        raise DataError(
            f"{folder} holds no model.safetensors; give the folder of a verifier, of warmstart --out"
        )
    return Qwen3ForCausalLM.from_pretrained(folder, dtype="float32")


def main(
    out: Annotated[Path, typer.Option(help="Folder for the weights and the tokenizer.")],
    seed: Annotated[int, typer.Option(help="Initial weights and data.")] = 0,
    steps: Annotated[int, typer.Option(help="Optimizer steps.")] = 3000,
    size: Annotated[int, typer.Option(help="Traces a step.")] = 256,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 2e-3,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    mix: Annotated[
        str, typer.Option(help='Changes to the trace mix as JSON, for example {"miss": 0.4}.')
    ] = "{}",
    workers: Annotated[int, typer.Option(help="Processes that generate data; 0 uses this one.")] = max(
        0, min(12, (os.cpu_count() or 1) - 2)
    ),
    proofs: Annotated[int, typer.Option(help="Held-out proofs for the measurement at the end.")] = 1024,
    begin: Annotated[
        Path | None, typer.Option(help="Folder of a verifier to go on from, without study.")
    ] = None,
) -> None:
    """Train the verifier that RL starts from, measure it and save it with a `training.json`."""
    import torch

    try:
        trace_mix = replace(TraceMix(), **json.loads(mix))
    except (DataError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"--mix {mix}: {error}") from error
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    started = time.monotonic()
    try:
        model, loss = train(
            seed=seed,
            steps=steps,
            size=size,
            lr=lr,
            mix=trace_mix,
            device=device,
            workers=workers,
            begin=begin,
        )
    except DataError as error:
        raise typer.BadParameter(str(error)) from error
    seconds = time.monotonic() - started
    save_model(model, out)
    measured = {d: asdict(evaluate(model, held_out(proofs, d))) for d in DIFFICULTIES}
    record = {
        "command": f"python -m pv_lab.warmstart --out DIR --seed {seed} --steps {steps} --size {size} "
        f"--lr {lr} --device {device} --mix '{mix}'" + (f" --begin {begin}" if begin else ""),
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else device,
        "torch": torch.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "mix": asdict(trace_mix),
        "loss": loss,
        "held_out_by_difficulty": measured,
    }
    text = json.dumps(record, indent=2) + "\n"
    write_atomically(out / "training.json", lambda path: path.write_text(text))
    typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
