"""Real solutions with real labels, as verl's parquet: what `run=small` trains a small model to check.

    python prepare.py --gsm8k example_model_solutions.jsonl --processbench gsm8k.jsonl --out DIR

To train on: the model solutions of openai/grade-school-math (MIT; four generators a question, right if the final
answer is), a share of them right as asked. Held out: ProcessBench's GSM8K part (Apache-2.0; people marked the first
wrong step), in the data sources `processbench/right` and `processbench/wrong`, which verl reports apart. A question
that is in both is left out of the first.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pv_lab.dataset import write_dataset
from pv_rl.errors import DataError

TURNS = [turn.strip() for turn in Path(__file__).with_name("prompt.txt").read_text().split("===\n")]
"""Two worked checks, each a question and its answer, and the question that is asked."""
CALCULATOR = re.compile(r"<<[^<>]*>>")
"""How grade-school-math marks what its generators computed with a tool."""
GENERATORS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def row(source: str, problem: str, solution: str, label: bool, index: int) -> dict[str, Any]:
    """One question with one solution in verl's schema; the label is whether the solution is right."""
    question = (
        TURNS[-1].replace("{problem}", problem.strip()).replace("{solution}", " ".join(solution.split()))
    )
    roles = ("user", "assistant") * len(TURNS)
    return {
        "data_source": source,
        "prompt": [
            {"role": role, "content": text}
            for role, text in zip(roles, [*TURNS[:-1], question], strict=False)
        ],
        "ability": "proof_verification",
        "reward_model": {"style": "rule", "ground_truth": str(label)},
        "extra_info": {"index": index, "problem": problem},
    }


def read(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON lines: {error}") from error


def training(path: Path, held_out: set[str], p_true: float, seed: int) -> list[dict[str, Any]]:
    """As many rows as the share of right ones allows, in an order that the seed picks."""
    rng = random.Random(seed)
    by_label: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for one in read(path):
        if one["question"].strip() not in held_out:
            for generator in GENERATORS:
                text = CALCULATOR.sub("", one[generator]["solution"])
                by_label[one[generator]["is_correct"]].append((one["question"], text))
    right, wrong = by_label[True], by_label[False]
    rng.shuffle(right)
    rng.shuffle(wrong)
    total = int(min(len(right) / p_true, len(wrong) / (1 - p_true)))
    drawn = [(*pair, True) for pair in right[: round(total * p_true)]]
    drawn += [(*pair, False) for pair in wrong[: total - len(drawn)]]
    rng.shuffle(drawn)
    return [row("gsm8k_solutions", *one, index) for index, one in enumerate(drawn)]


def main(
    gsm8k: Annotated[Path, typer.Option(help="example_model_solutions.jsonl of openai/grade-school-math.")],
    processbench: Annotated[Path, typer.Option(help="gsm8k.jsonl of QwenLM/ProcessBench.")],
    out: Annotated[Path, typer.Option(help="Folder for train.parquet and test.parquet.")],
    p_true: Annotated[
        float, typer.Option(help="Share of right solutions to train on.", min=0.01, max=0.99)
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 0,
) -> None:
    """Write the two parquet files."""
    checked = read(processbench)
    test = [
        row(f"processbench/{'right' if one['label'] == -1 else 'wrong'}", one["problem"], " ".join(one["steps"]),
            one["label"] == -1, index)
        for index, one in enumerate(checked)
    ]  # fmt: skip
    train = training(gsm8k, {one["problem"].strip() for one in checked}, p_true, seed)
    for name, rows in (("train", train), ("test", test)):
        write_dataset(rows, out / f"{name}.parquet")
        right = sum(one["reward_model"]["ground_truth"] == "True" for one in rows)
        typer.echo(f"{out / name}.parquet: {len(rows)} rows, {right} right, {len(rows) - right} wrong")


if __name__ == "__main__":
    typer.run(main)
