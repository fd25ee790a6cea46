"""Data of the study, by one command: `python -m pv_lab.smol.data --out DIR`.

    DIR/exact, DIR/weak    train.parquet: conversations for `run=sft_small`
    DIR/p50, DIR/p75       train.parquet and test.parquet for `run=small`; 50 and 75 % of the proofs are right

The held-out proofs are the same in both: `chain2` and `chain3` (the lab's, difficulty 2 and 3; RL sees 2), `long`
(difficulty 4, which nothing trains on), `story` and `equation` (other families), and ProcessBench's part on GSM8K.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from pv_judge.rowfiles import open_rows
from pv_lab.dataset import write_dataset
from pv_lab.many_runs import run_command
from pv_lab.samples import make_sample
from pv_lab.smol.families import FAMILIES, SEED, Proof
from pv_lab.smol.wording import EXACT, WEAK, ask, ask_about, check
from pv_rl.errors import DataError

__all__ = ["SHARES", "conversations", "held_out", "processbench", "training", "write_data"]

SHARES = (50, 75)
"""Percent of the proofs to train on that are right."""
STARTS = {"exact": EXACT, "weak": WEAK}
CHAINS = {"chain2": 2, "chain3": 3, "long": 4}
"""Difficulty of each held-out set of the lab's own proofs."""
STUDIED = (1, 2, 2, 3)
"""Difficulties of the proofs in the conversations."""
SFT_SEED, RL_SEED = 100, 200
"""Of proofs to train on, so that RL has others than the conversations."""
VOTES = 2
"""Rows for each held-out proof, one for each answer. With val_kwargs.n above 1, verl resamples every metric."""


def conversations(start: str, count: int) -> Iterator[dict[str, Any]]:
    """Questions with checks of one kind, `exact` or `weak`."""
    for index in range(count):
        rng = Random(f"pv-rl smol {start} {index}")
        sample = make_sample(
            seed=SFT_SEED + (start == "weak"),
            split="train",
            index=index,
            difficulty=rng.choice(STUDIED),
            p_true=0.5,
        )
        answer = check(rng, sample, STARTS[start])
        yield {
            "messages": [
                {"role": "user", "content": ask_about(sample)},
                {"role": "assistant", "content": answer},
            ]
        }


def training(share: int, count: int) -> Iterator[dict[str, Any]]:
    """Proofs of difficulty 2, `share` percent of them right."""
    for index in range(count):
        sample = make_sample(seed=RL_SEED, split="train", index=index, difficulty=2, p_true=share / 100)
        yield _row("smol/train", Proof(message=ask_about(sample), label=sample.label), index)


def held_out(count: int) -> Iterator[dict[str, Any]]:
    """`count` proofs of each set, half of them right, in the data sources `SET/right` and `SET/wrong`."""
    for name, difficulty in CHAINS.items():
        for index in range(count):
            sample = make_sample(seed=SEED, split="test", index=index, difficulty=difficulty, p_true=0.5)
            yield _held_out(name, Proof(message=ask_about(sample), label=sample.label), index)
    for name, family in FAMILIES.items():
        yield from (_held_out(name, family(index), index) for index in range(count))


def processbench(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of ProcessBench; right are those whose label is -1.

    Raises:
        DataError: a row has no problem, list of steps and label.
    """
    for index, row in enumerate(open_rows(path).rows()):
        problem, steps, label = (row.values.get(name) for name in ("problem", "steps", "label"))
        texts = isinstance(steps, list) and bool(steps) and all(isinstance(one, str) for one in steps)
        if not isinstance(problem, str) or not texts or type(label) is not int:
            raise DataError(
                f"row {row.number} of {path} has no problem, steps and label (-1 or a step's number). Give "
                "gsm8k.jsonl of ProcessBench"
            )
        message = ask(problem.strip(), [" ".join(step.split()) for step in steps])
        yield _held_out("processbench", Proof(message=message, label=label == -1), index)


def _held_out(name: str, proof: Proof, index: int) -> dict[str, Any]:
    return _row(f"{name}/{'right' if proof.label else 'wrong'}", proof, index)


def _row(source: str, proof: Proof, index: int) -> dict[str, Any]:
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": proof.message}],
        "ability": "proof_verification",
        "reward_model": {"style": "rule", "ground_truth": str(proof.label)},
        "extra_info": {"index": index},
    }


def write_data(out: Path, *, sft: int, weak: int, train: int, test: int, far: Path | None) -> Iterator[str]:
    """Write all files; yields a line for each.

    Args:
        out: folder.
        sft: conversations with exact checks.
        weak: conversations with weak checks.
        train: proofs for RL, of each share.
        test: proofs of each held-out set.
        far: gsm8k.jsonl of ProcessBench; None to leave it out.
    """
    if min(sft, weak, train, test) < 2:
        raise DataError("--sft, --weak, --train and --test are numbers of rows; give 2 or more of each")
    proofs = [*held_out(test), *(processbench(far) if far else ())]
    tests = [row for row in proofs for _ in range(VOTES)]
    for start, count in (("exact", sft), ("weak", weak)):
        path = out / start / "train.parquet"
        write_dataset(list(conversations(start, count)), path)
        yield f"{path}: {count} conversations"
    for share in SHARES:
        path = out / f"p{share}" / "train.parquet"
        write_dataset(list(training(share, train)), path)
        write_dataset(tests, path.with_name("test.parquet"))
        held_out_rows = f"{len(proofs)} proofs, {VOTES} rows each"
        yield f"{path}: {train} proofs, {share} % of them right; test.parquet beside it: {held_out_rows}"


def main(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    sft: Annotated[int, typer.Option(help="Conversations with exact checks.")] = 28_800,
    weak: Annotated[int, typer.Option(help="Conversations with weak checks.")] = 12_800,
    train: Annotated[int, typer.Option(help="Proofs for RL, of each share of right ones.")] = 2048,
    test: Annotated[int, typer.Option(help="Proofs of each held-out set.")] = 100,
    far: Annotated[
        Path | None,
        typer.Option("--processbench", help="gsm8k.jsonl of QwenLM/ProcessBench.", show_default=False),
    ] = None,
) -> None:
    """Write conversations, proofs for RL and held-out proofs as verl's parquet."""
    for line in write_data(out, sft=sft, weak=weak, train=train, test=test, far=far):
        typer.echo(line)


if __name__ == "__main__":
    run_command(main)
