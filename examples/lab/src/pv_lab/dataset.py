"""Verl parquet of the lab: `python -m pv_lab.dataset --out DIR`.

Test rows carry the data source `lab/right` or `lab/wrong`, since verl groups validation metrics by data
source: both classes show separately, and an accept-all verifier cannot look good.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from pv_judge.files import write_atomically
from pv_judge.pages.text import plural
from pv_lab.heads import grade_of
from pv_lab.samples import make_sample
from pv_rl.errors import DataError

__all__ = ["make_rows", "write_dataset"]


def make_rows(
    *, split: str, count: int, seed: int, difficulty: int, p_true: float, proofs_per_question: int = 1
) -> list[dict[str, Any]]:
    """`count` rows of one split in verl's schema; row i is the same whatever `count` is."""
    if count < 1:
        raise DataError(f"{count} {split} rows were asked for; give 1 or more")
    return [_row(split, index, seed, difficulty, p_true, proofs_per_question) for index in range(count)]


def _row(
    split: str, index: int, seed: int, difficulty: int, p_true: float, proofs_per_question: int
) -> dict[str, Any]:
    sample = make_sample(
        seed=seed,
        split=split,
        index=index,
        difficulty=difficulty,
        p_true=p_true,
        proofs_per_question=proofs_per_question,
    )
    source = "train" if split == "train" else "right" if sample.label else "wrong"
    return {
        "data_source": f"lab/{source}",
        "prompt": [{"role": "user", "content": sample.text}],
        "ability": "proof_verification",
        "reward_model": {"style": "rule", "ground_truth": str(sample.label)},
        "extra_info": {
            "split": split,
            "index": index,
            "question_id": sample.question.digest,
            "question": str(sample.question),
            "error_kind": sample.error_kind,
            "error_step": sample.error_step,
            "grade": grade_of(sample),
            "num_steps": len(sample.steps),
            "difficulty": difficulty,
        },
    }


def write_dataset(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows to a parquet file, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda temporary: pq.write_table(pa.Table.from_pylist(rows), temporary))


def main(
    out: Annotated[Path, typer.Option(help="Folder for train.parquet and test.parquet.")],
    train: Annotated[int, typer.Option(help="Number of training rows.")] = 2048,
    test: Annotated[int, typer.Option(help="Number of test rows.")] = 256,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 0,
    difficulty: Annotated[int, typer.Option(help="1 (short, small numbers) to 5.")] = 2,
    p_true: Annotated[float, typer.Option(help="Share of right proofs among training rows.")] = 0.6,
    test_p_true: Annotated[float, typer.Option(help="Share of right proofs among test rows.")] = 0.5,
    proofs_per_question: Annotated[int, typer.Option(help="Proofs of each question, in a row.")] = 1,
) -> None:
    """Generate questions with right and wrong proofs and write them as verl parquet."""
    try:
        for split, count, share in (("train", train, p_true), ("test", test, test_p_true)):
            rows = make_rows(
                split=split,
                count=count,
                seed=seed,
                difficulty=difficulty,
                p_true=share,
                proofs_per_question=proofs_per_question,
            )
            write_dataset(rows, out / f"{split}.parquet")
            right = sum(row["reward_model"]["ground_truth"] == "True" for row in rows)
            typer.echo(
                f"{out / split}.parquet: {plural(count, 'row')}, {plural(right, 'right proof')}, {count - right} wrong"
            )
    except (DataError, OSError) as error:
        raise typer.BadParameter(str(error)) from error


if __name__ == "__main__":
    typer.run(main)
